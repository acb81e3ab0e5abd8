"""Exit handlers and hooks, globals, names given to the world (facts 12, 13, 23)."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

HANDLER = """
- name: main
  steps:
  - - {name: a, template: TEMPLATE}
- name: handler
  outputs: {parameters: [{name: seen, valueFrom: {path: /tmp/seen}}]}
  container:
    image: i
    command: [sh, -c, 'printf "%s|%s" "$0" "$1" > /tmp/seen', "{{workflow.status}}", "{{workflow.failures}}"]
"""


def test_exit_handler_sees_success(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(HANDLER.replace("TEMPLATE", "ok"), "entrypoint: main\nonExit: handler")
    node = found[".onExit"]
    assert node.outputs["parameters"]["seen"] == 'Succeeded|"null"'
    assert (node.hooked, node.boundary) == (True, "")
    assert node.id not in found["wf"].children
    assert node.started >= found["wf"].finished
    assert found.phase == "Succeeded"


def test_exit_handler_sees_failures_and_repairs_nothing(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(HANDLER.replace("TEMPLATE", "bad"), "entrypoint: main\nonExit: handler")
    status, _, failures = found[".onExit"].outputs["parameters"]["seen"].partition("|")
    assert status == "Failed"
    assert {each["displayName"] for each in json.loads(json.loads(failures))} == {"a", "[0]", "wf"}
    assert found.phase == "Failed"


def test_a_failing_exit_handler_fails_the_workflow(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  steps:\n  - - {name: a, template: ok}\n", "entrypoint: main\nonExit: bad")
    assert found["wf"].phase == "Succeeded"
    assert (found.phase, found.message) == ("Failed", "main: Error (exit code 1)")


def test_an_exit_handler_that_cannot_be_executed_is_an_error_whatever_came_before(
    run_workflow: Callable[..., Any],
) -> None:
    """As operate of 4.0.7 has it; here the workflow was Failed, with the message of the step."""
    found = run_workflow(
        "- name: tidy\n  timeout: '{{workflow.status}}'\n  container: {image: i, command: ['true']}\n",
        "entrypoint: bad\nonExit: tidy",
    )
    said = 'error in exit template execution : invalid timeout format. time: invalid duration "Failed"'
    assert (found.phase, found.message) == ("Error", said)
    assert (found["wf"].phase, found[".onExit"].phase) == ("Failed", "Error")


def test_hooks_of_tasks_are_waited_for(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - name: a
              template: say
              arguments: {parameters: [{name: text, value: hello}]}
              hooks:
                exit:
                  template: say
                  arguments: {parameters: [{name: text, value: "{{tasks.a.status}} {{tasks.a.outputs.parameters.said}}"}]}
            - {name: b, template: ok, depends: a}
        """
    )
    hook = found[".a.onExit"]
    assert hook.outputs["parameters"]["said"] == "Succeeded hello"
    assert hook.hooked
    assert hook.id in found[".a"].children
    assert found[".b"].started >= hook.finished
    assert found.phase == "Succeeded"


def test_hooks_of_steps_run_after_failures_too(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  steps:\n  - - {name: a, template: bad, onExit: ok}\n")
    assert found["[0].a.onExit"].phase == "Succeeded"
    assert found.phase == "Failed"


def test_global_parameters_travel_without_wiring(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: publish}
          - - name: b
              template: say
              arguments: {parameters: [{name: text, value: "{{workflow.outputs.parameters.best}} {{workflow.parameters.p}} {{workflow.name}}"}]}
        - name: publish
          outputs: {parameters: [{name: x, globalName: best, valueFrom: {path: /tmp/x}}]}
          container: {image: i, command: [sh, -c, "echo 42 > /tmp/x"]}
        """,
        "entrypoint: main\narguments: {parameters: [{name: p, value: 1.0}]}",
    )
    assert found["[1].b"].outputs["parameters"]["said"] == "42 1 wf"
    assert found.state.outputs == {"parameters": {"best": "42"}}


def test_given_parameters_win_and_enum_holds(run_workflow: Callable[..., Any]) -> None:
    spec = "entrypoint: main\narguments: {parameters: [{name: p, value: a, enum: [a, b]}]}"
    body = "- name: main\n  container: {image: i, command: [echo, '{{workflow.parameters.p}}']}\n"
    found = run_workflow(body, spec, parameters={"p": "b"})
    assert found.log("wf") == "b\n"
