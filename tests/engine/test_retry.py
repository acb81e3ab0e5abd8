"""retryStrategy: policies, limits, expressions, backoff and what the nodes say (facts 9, 10, 11)."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from argosy.workflows.engine.retry import wait_seconds


def retried(strategy: str, code: str = "exit 3") -> str:
    return f"""
- name: main
  retryStrategy: {strategy}
  container: {{image: i, command: [sh, -c, "{code}"]}}
"""


def test_the_retry_node_is_there_even_if_nothing_is_retried(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(retried("{limit: 2}", "true"))
    assert [(name, node.type) for name, node in found.by_name.items()] == [("wf", "Retry"), ("(0)", "Pod")]
    assert found["(0)"].retried
    assert (found.phase, found["wf"].exit_code) == ("Succeeded", 0)


def test_limit(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(retried("{limit: 2, retryPolicy: Always}"))
    assert list(found.phases()) == ["wf", "(0)", "(1)", "(2)"]
    assert found["(2)"].message == "main: Error (exit code 3)"
    assert (found.phase, found.message) == ("Failed", "No more retries left")


@pytest.mark.parametrize(
    ("strategy", "attempts", "message"),
    [
        ("{limit: 2, expression: 'asInt(lastRetry.exitCode) == 3'}", 3, "No more retries left"),
        ("{limit: 2, expression: 'lastRetry.exitCode == \"4\"'}", 1, "retryStrategy.expression evaluated to false"),
        ("{limit: 2, expression: 'lastRetry.status == \"Error\"'}", 1, "retryStrategy.expression evaluated to false"),
        ("{limit: 2, expression: 'lastRetry.message contains \"exit code 3\"'}", 3, "No more retries left"),
        ("{limit: 5, expression: 'asInt(retries) < 1'}", 2, "retryStrategy.expression evaluated to false"),
        ("{limit: 2, retryPolicy: OnError}", 1, "main: Error (exit code 3)"),
        ("{limit: 1, retryPolicy: OnFailure}", 2, "No more retries left"),
        ("{limit: 1, retryPolicy: OnTransientError}", 1, "main: Error (exit code 3)"),
        ("{limit: 0}", 1, "No more retries left"),
    ],
)
def test_policies_and_expressions(run_workflow: Callable[..., Any], strategy: str, attempts: int, message: str) -> None:
    found = run_workflow(retried(strategy))
    assert len(found.by_name) == attempts + 1
    assert (found.phase, found.message) == ("Failed", message)


@pytest.mark.parametrize(("said", "attempts"), [("connect: connection refused", 2), ("connection refused", 1)])
def test_transient_is_what_argo_calls_so(run_workflow: Callable[..., Any], said: str, attempts: int) -> None:
    container = (
        f"""{{image: i, command: [sh, -c, 'echo "{said}" > /tmp/last; exit 3'], terminationMessagePath: /tmp/last}}"""
    )
    strategy = "{limit: 1, retryPolicy: OnTransientError}"
    found = run_workflow(f"- name: main\n  retryStrategy: {strategy}\n  container: {container}")
    assert len(found.by_name) == attempts + 1


def test_an_output_that_is_missing_is_an_error_and_retried_on_error(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          retryStrategy: {limit: 1, retryPolicy: OnError}
          outputs: {parameters: [{name: p, valueFrom: {path: /tmp/none}}]}
          container: {image: i, command: ["true"]}
        """
    )
    assert (found["(1)"].phase, found.phase) == ("Error", "Error")
    assert found["(1)"].message == "wait: Error (exit code 64): open /tmp/none: no such file or directory"


def test_variables_of_attempts(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          retryStrategy: {limit: 3}
          outputs: {parameters: [{name: seen, valueFrom: {path: /tmp/seen}}]}
          container:
            image: i
            command: [sh, -c]
            args:
            - 'printf %s "{{retries}}/{{lastRetry.exitCode}}/{{lastRetry.status}}/{{lastRetry.message}}" > /tmp/seen; exit {{=asInt(retries) < 2 ? 5 : 0}}'
        """
    )
    assert found.phase == "Succeeded"
    assert found["(0)"].outputs["parameters"]["seen"] == "0/0//"
    assert found["wf"].outputs["parameters"]["seen"] == "2/5/Failed/main: Error (exit code 5)"
    assert found["wf"].children == [found[f"({index})"].id for index in range(3)]


def test_backoff_waits_with_factor_and_cap(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(retried("{limit: 3, backoff: {duration: 100ms, factor: 2, cap: 150ms}}"))
    nodes = [found[f"({index})"] for index in range(4)]
    gaps = [after.started - before.finished for before, after in itertools.pairwise(nodes)]
    assert gaps[0] >= 0.1
    assert gaps[1] >= 0.15
    assert 0.15 <= gaps[2] < 0.35
    assert found.message == "No more retries left"


def test_a_backoff_that_doubled_a_thousand_times_is_the_cap() -> None:
    assert wait_seconds({"duration": "1s", "factor": "2", "cap": "1m"}, 2000) == 60.0
    assert wait_seconds({"duration": "1s", "factor": "2"}, 2000) == pytest.approx(2**63 / 1e9)


def test_max_duration_ends_retries(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(retried("{limit: 9, backoff: {duration: 1s, maxDuration: 1900ms}}"))
    assert found.message == "Backoff would exceed max duration limit"
    assert list(found.phases()) == ["wf", "(0)", "(1)"]


def test_retried_steps(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          retryStrategy: {limit: 1}
          steps:
          - - {name: a, template: bad}
        """
    )
    assert list(found.phases()) == ["wf", "(0)", "(0)[0]", "(0)[0].a", "(1)", "(1)[0]", "(1)[0].a"]
    assert found.message == "No more retries left"


def test_template_defaults_wrap_every_template(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        "- name: main\n  steps:\n  - - {name: a, template: ok}\n",
        "entrypoint: main\ntemplateDefaults: {retryStrategy: {limit: 1}}",
    )
    assert list(found.phases()) == ["wf", "(0)", "(0)[0]", "(0)[0].a", "(0)[0].a(0)"]
    assert found.phase == "Succeeded"


def test_loop_items_with_retries_are_collected_once(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: x, template: twice, withItems: [a, b], arguments: {parameters: [{name: text, value: "{{item}}"}]}}
            - name: yy
              template: say
              depends: x
              arguments: {parameters: [{name: text, value: "{{tasks.x.outputs.parameters.said}}"}]}
        - name: twice
          retryStrategy: {limit: 2}
          inputs: {parameters: [{name: text}]}
          outputs: {parameters: [{name: said, valueFrom: {path: /tmp/said}}]}
          container: {image: i, command: [sh, -c, "printf %s $0 > /tmp/said; test {{retries}} = 1", "{{inputs.parameters.text}}"]}
        """
    )
    assert found.phase == "Succeeded"
    assert ".x(0:a)(1)" in found.by_name
    assert found[".yy"].outputs["parameters"]["said"] == '["a","b"]'
