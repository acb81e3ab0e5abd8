"""Steps, conditions, loops and their outputs (facts 1, 3, 6, 7, 14, 15, 16, 18, 24)."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from typing import Any


def test_groups_run_one_after_the_other(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: ok}
            - {name: b, template: ok}
          - - {name: c, template: ok}
        """
    )
    assert list(found.phases()) == ["wf", "[0]", "[0].a", "[0].b", "[1]", "[1].c"]
    assert found["[0]"].type == "StepGroup"
    assert found["[0].a"].display_name == "a"
    assert found["[0].a"].children == found["[0].b"].children == [found["[1]"].id]
    assert found["[1].c"].started >= max(found["[0].a"].finished, found["[0].b"].finished)


def test_a_failed_step_is_named_by_group_steps_and_workflow(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: bad}
          - - {name: b, template: ok}
        """
    )
    message = f"child '{found['[0].a'].id}' failed"
    assert found["[0].a"].id.startswith("wf-")
    assert [found["[0]"].message, found["wf"].message, found.message] == [message] * 3
    assert "[1]" not in found.phases()


def test_continue_on_keeps_the_node_failed(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: bad, continueOn: {failed: true}}
          - - {name: b, template: ok}
        """
    )
    assert (found.phase, found["[0].a"].phase, found["[0]"].phase) == ("Succeeded", "Failed", "Succeeded")


def test_when_reads_results(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: flip, template: flip}
          - - {name: heads, template: ok, when: "{{steps.flip.outputs.result}} == heads"}
            - {name: tails, template: ok, when: "{{steps.flip.outputs.result}} == tails"}
        - name: flip
          script: {image: i, command: [python], source: "print('tails')"}
        """
    )
    assert found["[0].flip"].outputs["result"] == "tails"
    assert found["[1].tails"].phase == "Succeeded"
    assert (found["[1].heads"].type, found["[1].heads"].phase) == ("Skipped", "Skipped")
    assert found["[1].heads"].message == "when 'tails == heads' evaluated false"


def test_result_is_kept_only_where_it_is_read_and_without_stderr(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: noisy}
            - {name: b, template: noisy}
          - - {name: c, template: say, arguments: {parameters: [{name: text, value: "{{steps.a.outputs.result}}"}]}}
        - name: noisy
          container: {image: i, command: [sh, -c, "echo out; echo err >&2; echo"]}
        """
    )
    assert found["[0].a"].outputs == {"result": "out\n"}
    assert found["[0].b"].outputs == {}
    assert sorted(found.log("[0].a").split()) == ["err", "out"]
    assert found["[1].c"].outputs["parameters"]["said"] == "out"


def test_loops_are_named_and_collected_in_order(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - name: x
              template: say
              withItems: [foo, 7, {k: alpha, v: 1}, true]
              arguments: {parameters: [{name: text, value: "{{item}}"}]}
          - - name: yy
              template: say
              arguments: {parameters: [{name: text, value: "{{steps.x.outputs.parameters.said}}"}]}
            - name: z
              template: say
              arguments: {parameters: [{name: text, value: "{{steps.x.outputs.parameters}}"}]}
          - - name: s
              template: say
              withSequence: {start: "3", end: "1", format: "n%02d"}
              arguments: {parameters: [{name: text, value: "{{item}}"}]}
            - name: p
              template: say
              withParam: "{{steps.yy.outputs.parameters.said}}"
              when: "{{=toJson(item) != '\\"foo\\"'}}"
              arguments: {parameters: [{name: text, value: "{{item}}"}]}
        """
    )
    assert found.phase == "Succeeded"
    items = ["[0].x(0:foo)", "[0].x(1:7)", "[0].x(2:k:alpha,v:1)", "[0].x(3:true)"]
    assert [name for name in found.phases() if name.startswith("[0].")] == items
    assert [found[name].outputs["parameters"]["said"] for name in items] == ["foo", "7", '{"k":"alpha","v":1}', "true"]
    said = json.loads(found["[1].yy"].outputs["parameters"]["said"])
    assert said == ["foo", "7", '{"k":"alpha","v":1}', "true"]
    assert json.loads(found["[1].z"].outputs["parameters"]["said"])[0] == {"said": "foo"}
    assert [name for name in found.phases() if name.startswith("[2].s")] == [
        "[2].s(0:n03)",
        "[2].s(1:n02)",
        "[2].s(2:n01)",
    ]
    assert found["[2].p(0:foo)"].phase == "Skipped"
    assert found["[2].p(1:7)"].phase == "Succeeded"


def test_an_empty_loop_is_skipped(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: x, template: ok, withParam: "[]"}
          - - {name: yy, template: ok}
        """
    )
    assert (found["[0].x"].phase, found["[0].x"].message) == ("Skipped", "Skipped, empty params")
    assert found["[1].yy"].phase == found.phase == "Succeeded"


def test_a_bad_with_param_is_an_error_of_the_group(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  steps:\n  - - {name: x, template: ok, withParam: 'no json'}\n")
    assert found.phase == "Failed"
    assert found["[0]"].phase == "Error"
    assert found.message.startswith("withParam value could not be parsed as a JSON list: no json: ")


def test_fail_fast_stops_a_loop_with_parallelism(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          parallelism: 1
          failFast: true
          steps:
          - - name: x
              template: exit
              withItems: [0, 1, 2, 3]
              arguments: {parameters: [{name: code, value: "{{item}}"}]}
        """
    )
    message = "template has failed or errored children and failFast enabled"
    assert [found["[0]"].message, found["wf"].message, found.message] == [message] * 3
    assert [name for name in found.phases() if ".x(" in name] == ["[0].x(0:0)", "[0].x(1:1)"]


def test_parallelism_of_template_and_workflow(run_workflow: Callable[..., Any]) -> None:
    body = """
        - name: main
          {limit}
          steps:
          - - name: x
              template: nap
              withItems: ["0.11", "0.12", "0.13"]
              arguments: {{parameters: [{{name: seconds, value: "{{{{item}}}}"}}]}}
        """
    found = run_workflow(body.format(limit="parallelism: 1"))
    spans = sorted((node.started, node.finished) for node in found.state.nodes.values() if node.type == "Pod")
    assert len(spans) == 3
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_workflow_parallelism(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: x, template: nap, withItems: ["0.11", "0.12", "0.13"],
               arguments: {parameters: [{name: seconds, value: "{{item}}"}]}}
        """,
        "entrypoint: main\nparallelism: 2",
    )
    spans = [(node.started, node.finished) for node in found.state.nodes.values() if node.type == "Pod"]
    assert len(spans) == 3
    assert all(sum(begin <= moment < end for begin, end in spans) <= 2 for moment, _ in spans)


def test_the_caller_of_a_run_keeps_its_own_recursion_limit(run_workflow: Callable[..., Any]) -> None:
    # A limit left at 20,000 let a TOML file nested a thousand deep through in the same process.
    before = sys.getrecursionlimit()
    assert run_workflow("- {name: main, steps: [[{name: a, template: ok}]]}").phase == "Succeeded"
    assert sys.getrecursionlimit() == before
