"""DAGs: what `depends`, `dependencies`, failFast, continueOn and targets come to (the controller's facts 1, 4, 6, 19)."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def dag(*tasks: str, extra: str = "") -> str:
    lines = "\n".join(f"    - {task}" for task in tasks)
    return (
        f"- name: main\n  dag:\n    {extra}\n    tasks:\n{lines}\n"
        if extra
        else f"- name: main\n  dag:\n    tasks:\n{lines}\n"
    )


def test_order_follows_depends(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        dag(
            "{name: c, template: ok, depends: a && b}", "{name: a, template: ok}", "{name: b, template: ok, depends: a}"
        )
    )
    assert found.phase == "Succeeded"
    assert found.phases() == {"wf": "Succeeded", ".a": "Succeeded", ".b": "Succeeded", ".c": "Succeeded"}
    assert found[".a"].finished <= found[".b"].started <= found[".b"].finished <= found[".c"].started
    assert found["wf"].children == [found[".a"].id]
    assert found[".a"].children == [found[".b"].id, found[".c"].id]


def test_a_failed_task_omits_the_chain_below_it(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        dag("{name: a, template: bad}", "{name: b, template: ok, depends: a}", "{name: c, template: ok, depends: b}")
    )
    assert (found.phase, found.message) == ("Failed", "")
    assert found[".a"].message == "main: Error (exit code 1)"
    assert found[".a"].exit_code == 1
    for name in (".b", ".c"):
        assert (found[name].type, found[name].phase) == ("Skipped", "Omitted")
        assert found[name].message == "omitted: depends condition not met"


OPERATORS = {
    "bad.Failed": True, "bad.Succeeded": False, "bad.Errored": False, "bad": False, "!bad": True, "bad || good": True,
    "bad.Failed && good.Succeeded": True, "skipped": True, "skipped.Skipped": True, "skipped.Succeeded": False,
    "omitted.Omitted": True, "omitted": False, "loop.AnySucceeded": True, "loop.AllFailed": False,
    "lost.AllFailed": True, "(bad.Failed || bad.Errored) && !omitted": True, "error.Errored": True,
}  # fmt: skip


def test_depends_operators(run_workflow: Callable[..., Any]) -> None:
    item = "arguments: {parameters: [{name: code, value: '{{item}}'}]}"
    found = run_workflow(
        dag(
            "{name: good, template: ok}",
            "{name: bad, template: bad}",
            "{name: error, template: ok, withParam: nonsense}",
            "{name: skipped, template: ok, when: a == b}",
            "{name: omitted, template: ok, depends: bad}",
            f"{{name: loop, template: exit, withItems: [0, 1], {item}}}",
            f"{{name: lost, template: exit, withItems: [1, 1], {item}}}",
            *(f"{{name: t{i}, template: ok, depends: '{text}'}}" for i, text in enumerate(OPERATORS)),
            extra="failFast: false",
        )
    )
    ran = {text: found[f".t{index}"].phase for index, text in enumerate(OPERATORS)}
    assert ran == {text: "Succeeded" if runs else "Omitted" for text, runs in OPERATORS.items()}
    assert found[".loop"].type == "TaskGroup"
    assert found[".error"].phase == "Error"


def test_a_failure_that_a_task_accepts_does_not_fail_the_dag(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(dag("{name: a, template: bad}", "{name: b, template: ok, depends: a.Failed}"))
    assert found.phase == "Succeeded"


def test_dependencies_with_continue_on(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        dag("{name: a, template: bad, continueOn: {failed: true}}", "{name: b, template: ok, dependencies: [a]}")
    )
    assert (found.phase, found[".a"].phase, found[".b"].phase) == ("Succeeded", "Failed", "Succeeded")


def test_fail_fast_leaves_running_tasks_to_end(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        dag(
            "{name: a, template: bad}",
            "{name: b, template: nap, arguments: {parameters: [{name: seconds, value: '0.3'}]}}",
            "{name: c, template: ok, depends: b}",
        )
    )
    assert found.phase == "Failed"
    assert found[".b"].phase == "Succeeded"
    assert found[".c"].phase == "Succeeded"


def test_target_runs_only_what_it_needs(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        dag(
            "{name: a, template: ok}",
            "{name: b, template: ok, depends: a}",
            "{name: c, template: ok}",
            extra="target: b",
        )
    )
    assert set(found.phases()) == {"wf", ".a", ".b"}
    assert found.phase == "Succeeded"


def test_outputs_travel_along_nested_dags(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: inner, template: inner, arguments: {parameters: [{name: word, value: 'a "b"'}]}}
            - name: last
              template: say
              depends: inner
              arguments: {parameters: [{name: text, value: "<{{tasks.inner.outputs.parameters.out}}>"}]}
        - name: inner
          inputs: {parameters: [{name: word}]}
          outputs: {parameters: [{name: out, valueFrom: {parameter: "{{tasks.x.outputs.parameters.said}}"}}]}
          dag:
            tasks:
            - {name: x, template: say, arguments: {parameters: [{name: text, value: "{{inputs.parameters.word}}!"}]}}
        """
    )
    assert found[".last"].outputs["parameters"] == {"said": '<a "b"!>'}
    assert found[".inner"].outputs["parameters"] == {"out": 'a "b"!'}
    assert (found[".inner"].type, found[".inner.x"].display_name) == ("DAG", "x")


def test_skipped_producer_gives_its_default_else_the_consumers(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: a, template: with-default, when: "no == yes"}
            - {name: b, template: without, when: "no == yes"}
            - name: c
              template: consumer
              depends: a && b
              arguments:
                parameters:
                - {name: x, value: "{{tasks.a.outputs.parameters.p}}"}
                - {name: z, value: "{{tasks.b.outputs.parameters.p}}"}
        - name: with-default
          outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p, default: producer}}]}
          container: {image: i, command: ["true"]}
        - name: without
          outputs: {parameters: [{name: p, valueFrom: {path: /tmp/p}}]}
          container: {image: i, command: ["true"]}
        - name: consumer
          inputs: {parameters: [{name: x}, {name: z, default: consumer}]}
          container: {image: i, command: [echo, "{{inputs.parameters.x}} {{inputs.parameters.z}}"]}
        """
    )
    assert found.phase == "Succeeded"
    assert found.log(".c") == "producer consumer\n"
    assert found[".a"].message == "when 'no == yes' evaluated false"
