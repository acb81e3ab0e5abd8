"""Small workflows, each one rule of Argo's or the edge of one: name -> the templates beside STOCK, or the whole spec.

``@C`` stands for a container. ``recorded.json`` holds what the real ``argo lint`` says of each.
"""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import textwrap

STOCK = """
- {name: ok, @C}
- {name: say, inputs: {parameters: [{name: text}]}, outputs: {parameters: [{name: said, valueFrom: {path: /tmp/said}}]}, @C}
- {name: hear, inputs: {parameters: [{name: text, default: x}]}, @C}
- {name: make, outputs: {artifacts: [{name: file, path: /tmp/file}]}, @C}
- {name: take, inputs: {artifacts: [{name: file, path: /tmp/file}]}, @C}
- {name: code, script: {image: i, command: [sh], source: 'true'}}
"""
LIBRARY = """
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: lib}
spec:
  entrypoint: start
  arguments: {parameters: [{name: given, value: '1'}]}
  templates:
  - {name: start, inputs: {parameters: [{name: given}]}, @C}
  - {name: echo, inputs: {parameters: [{name: text}]}, outputs: {parameters: [{name: said, valueFrom: {path: /tmp/s}}]}, @C}
  - {name: own, steps: [[{name: a, template: echo, arguments: {parameters: [{name: text, value: x}]}}]]}
---
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: broken}
spec:
  entrypoint: start
  templates:
  - {name: start, @C}
  - {name: bad, container: {image: i, command: ['{{inputs.parameters.q}}']}}
  - {name: bare, container: {command: [x]}}
---
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: imaged}
spec:
  templateDefaults: {container: {image: i}}
  templates:
  - {name: bare, container: {command: [x]}}
"""
_ARGUMENT = "arguments: {parameters: [{name: text, value: '%s'}]}"


def _steps(*groups: str) -> str:
    return "- {name: main, steps: [" + ", ".join(f"[{group}]" for group in groups) + "]}"


def _dag(*tasks: str, more: str = "") -> str:
    return "- {name: main, dag: {" + more + "tasks: [" + ", ".join(tasks) + "]}}"


def _call(name: str, template: str, text: str | None = None, more: str = "") -> str:
    argument = "" if text is None else ", " + _ARGUMENT % text.replace("'", "''")
    return f"{{name: {name}, template: {template}{argument}{more and ', ' + more}}}"


def _main(more: str, command: str = "[x]") -> str:
    return f"- {{name: main, {more}container: {{image: i, command: {command}}}}}"


def _tag(tag: str, more: str = "") -> str:
    return _main(more, '["%s"]' % ("{{" + tag + "}}"))


IN = "inputs: {parameters: [{name: p, value: v}]}, "
STEP_CASES = {
    "steps see earlier outputs": _steps(
        _call("a", "say", "x"), _call("b", "say", "{{steps.a.outputs.parameters.said}}")
    ),
    "steps: a later step's output": _steps(
        _call("a", "say", "{{steps.b.outputs.parameters.said}}"), _call("b", "say", "x")
    ),
    "steps: its own output": _steps(_call("a", "say", "{{steps.a.outputs.parameters.said}}")),
    "steps: a neighbour's output": _steps(
        _call("a", "say", "x") + ", " + _call("b", "say", "{{steps.a.outputs.parameters.said}}")
    ),
    "steps: a later neighbour's output": _steps(
        _call("a", "say", "{{steps.b.outputs.parameters.said}}") + ", " + _call("b", "say", "x")
    ),
    "steps: an undeclared output": _steps(
        _call("a", "say", "x"), _call("b", "say", "{{steps.a.outputs.parameters.other}}")
    ),
    "steps: an undeclared artifact": _steps(
        _call("a", "make"),
        "{name: b, template: take, arguments: {artifacts: [{name: file, from: '{{steps.a.outputs.artifacts.no}}'}]}}",
    ),
    "steps: a declared artifact": _steps(
        _call("a", "make"),
        "{name: b, template: take, arguments: {artifacts: [{name: file, from: '{{steps.a.outputs.artifacts.file}}'}]}}",
    ),
    "steps: result of a container": _steps(_call("a", "ok"), _call("b", "say", "{{steps.a.outputs.result}}")),
    "steps: exit code": _steps(_call("a", "ok"), _call("b", "say", "{{steps.a.exitCode}}")),
    "steps: result of steps": "- {name: in, steps: [[{name: x, template: ok}]]}\n"
    + _steps(_call("a", "in"), _call("b", "say", "{{steps.a.outputs.result}}")),
    "steps: status, id and times": _steps(
        _call("a", "ok"),
        _call("b", "say", "{{steps.a.status}} {{steps.a.id}} {{steps.a.startedAt}} {{steps.a.finishedAt}}"),
    ),
    "steps: host": _steps(_call("a", "ok"), _call("b", "say", "{{steps.a.hostNodeName}}")),
    "steps: ip of no daemon": _steps(_call("a", "ok"), _call("b", "say", "{{steps.a.ip}}")),
    "steps: own status": _steps(_call("a", "say", "{{steps.a.status}}")),
    "steps: unknown step": _steps(_call("a", "say", "{{steps.zz.outputs.result}}")),
    "steps: tasks in steps": _steps(_call("a", "ok"), _call("b", "say", "{{tasks.a.outputs.result}}")),
    "steps: the name": _steps(_call("a", "say", "{{steps.name}}")),
    "steps: an unknown step in when": _steps(_call("a", "ok", None, "when: '{{steps.zz.outputs.result}} == 1'")),
    "steps: an earlier step in when": _steps(
        _call("a", "code"), _call("b", "ok", None, "when: '{{steps.a.outputs.result}} == 1'")
    ),
    "steps: no name": _steps("{template: ok}"),
    "steps: names with _": _steps(_call("a_b", "ok")),
    "steps: name twice": _steps(_call("a", "ok"), _call("a", "ok")),
    "steps: name with a tag": "- {name: main, inputs: {parameters: [{name: p, value: v}]}, steps: [[{name: 'a-{{inputs.parameters.p}}', template: ok}]]}",
    "steps: empty list": "- {name: main, steps: []}",
    "steps: empty group": "- {name: main, steps: [[]]}",
    "steps: depends": _steps(_call("a", "ok"), _call("b", "ok", None, "depends: a")),
    "steps: no such template": _steps(_call("a", "zz")),
    "steps: no template": _steps("{name: a}"),
    "steps: a tag for a template": _steps(_call("a", "'{{workflow.name}}'")),
    "steps: an argument is missing": _steps(_call("a", "say")),
    "steps: an argument has a default": _steps(_call("a", "hear")),
    "steps: an argument without value": _steps("{name: a, template: say, arguments: {parameters: [{name: text}]}}"),
    "steps: an argument that nobody asked for": _steps(_call("a", "ok", "x")),
    "steps: duplicate arguments": _steps(
        "{name: a, template: say, arguments: {parameters: [{name: text, value: a}, {name: text, value: b}]}}"
    ),
    "steps: an argument without name": _steps("{name: a, template: say, arguments: {parameters: [{value: a}]}}"),
    "steps: an argument from a path": _steps(
        "{name: a, template: say, arguments: {parameters: [{name: text, valueFrom: {path: /tmp/x}}]}}"
    ),
    "steps: an artifact is missing": _steps(_call("a", "take")),
    "steps: an artifact from nowhere": _steps("{name: a, template: take, arguments: {artifacts: [{name: file}]}}"),
    "steps: a raw artifact": _steps(
        "{name: a, template: take, arguments: {artifacts: [{name: file, raw: {data: x}}]}}"
    ),
    "steps: an artifact from an expression": _steps(
        _call("a", "make"),
        "{name: b, template: take, arguments: {artifacts: [{name: file, fromExpression: 'steps.a.outputs.artifacts.file'}]}}",
    ),
    "steps: an optional artifact is missing": "- {name: may, inputs: {artifacts: [{name: f, path: /tmp/f, optional: true}]}, @C}\n"
    + _steps(_call("a", "may")),
    "steps: an enum in arguments": _steps(
        "{name: a, template: say, arguments: {parameters: [{name: text, value: a, enum: [a, b]}]}}"
    ),
    "steps: outside an enum in arguments": _steps(
        "{name: a, template: say, arguments: {parameters: [{name: text, value: c, enum: [a, b]}]}}"
    ),
    "inputs: an enum is not checked": "- {name: pick, inputs: {parameters: [{name: text, enum: [a, b]}]}, @C}\n"
    + _steps(_call("a", "pick", "c")),
    "steps: continueOn": _steps(_call("a", "ok", None, "continueOn: {failed: true}")),
    "steps: a later output in a nested template": "- {name: in, inputs: {parameters: [{name: text}]}, steps: [[{name: x, template: say, arguments: {parameters: [{name: text, value: '{{steps.y.outputs.result}}'}]}}], [{name: y, template: code}]]}\n"
    + _steps(_call("a", "in", "1")),
    "steps: deadline": "- {name: main, activeDeadlineSeconds: 5, steps: [[{name: a, template: ok}]]}",
    "steps: timeout": "- {name: main, timeout: 5s, steps: [[{name: a, template: ok}]]}",
    "steps: parallelism": "- {name: main, parallelism: 1, steps: [[{name: a, template: ok}]]}",
    "steps: recursion": _steps(_call("a", "main", None, "when: 'false'")),
    "steps: outputs": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {parameter: '{{steps.a.outputs.parameters.said}}'}}]}, steps: [[{name: a, template: say, arguments: {parameters: [{name: text, value: x}]}}]]}",
    "steps: outputs of an unknown step": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {parameter: '{{steps.z.outputs.parameters.said}}'}}]}, steps: [[{name: a, template: ok}]]}",
    "steps: outputs from a path": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {path: /tmp/x}}]}, steps: [[{name: a, template: ok}]]}",
    "steps: outputs from an expression": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {expression: \"steps['a'].outputs.result\"}}]}, steps: [[{name: a, template: code}]]}",
    "steps: outputs from both": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {expression: '1', parameter: '1'}}]}, steps: [[{name: a, template: code}]]}",
    "steps: an artifact out": "- {name: main, outputs: {artifacts: [{name: o, from: '{{steps.a.outputs.artifacts.file}}'}]}, steps: [[{name: a, template: make}]]}",
    "steps: an artifact out with a path": "- {name: main, outputs: {artifacts: [{name: o, path: /tmp/x, from: '{{steps.a.outputs.artifacts.file}}'}]}, steps: [[{name: a, template: make}]]}",
    "steps: an artifact in with a path": "- {name: in, inputs: {artifacts: [{name: file, path: /tmp/x}]}, steps: [[{name: a, template: ok}]]}\n"
    + _main(""),
    "steps: an unknown field deep in a step": _steps(
        "{name: a, template: take, arguments: {artifacts: [{name: file, raw: {data: x}, subpath: z}]}}"
    ),
    "steps: inline": _steps("{name: a, inline: {@C}}"),
    "steps: inline without an input": _steps("{name: a, inline: {inputs: {parameters: [{name: q}]}, @C}}"),
    "steps: inline of no kind": _steps("{name: a, inline: {inputs: {parameters: [{name: q, value: x}]}}}"),
    "steps: inline of an unknown template": _steps("{name: a, inline: {steps: [[{name: b, template: zz}]]}}"),
    "steps: inline of two kinds": _steps("{name: a, inline: {suspend: {duration: '1'}, @C}}"),
    "steps: inline tasks among themselves": _steps(
        "{name: a, inline: {dag: {tasks: [{name: b, template: say, arguments: {parameters: [{name: text, value: x}]}},"
        " {name: c, depends: b, template: hear, arguments: {parameters: [{name: text, value: '{{tasks.b.outputs.parameters.said}}'}]}}]}}}"
    ),
    "steps: inline beside a template": _steps("{name: a, template: ok, inline: {@C}}"),
    "steps: an unknown field inline": _steps("{name: a, inline: {contaner: {image: i}}}"),
    "steps: a chosen artifact out": "- {name: main, outputs: {artifacts: [{name: o, fromExpression: steps.a.outputs.artifacts.file}]}, steps: [[{name: a, template: make}]]}",
    "steps: an artifact out twice chosen": "- {name: main, outputs: {artifacts: [{name: o, from: '{{steps.a.outputs.artifacts.file}}', fromExpression: steps.a.outputs.artifacts.file}]}, steps: [[{name: a, template: make}]]}",
    "steps: an artifact out from nowhere": "- {name: main, outputs: {artifacts: [{name: o}]}, steps: [[{name: a, template: ok}]]}",
}
LOOP_CASES = {
    "items": _steps(_call("a", "say", "{{item}}", "withItems: [a, b]")),
    "items: a key of a map": _steps(_call("a", "say", "{{item.k}}", "withItems: [{k: 1}, {k: 2}]")),
    "items: a key that the items lack": _steps(_call("a", "say", "{{item.z}}", "withItems: [{k: 1}]")),
    "items: a key that one item lacks": _steps(_call("a", "say", "{{item.z}}", "withItems: [{k: 1}, {z: 1}]")),
    "items: a key of plain items": _steps(_call("a", "say", "{{item.k}}", "withItems: [1, 2]")),
    "items: a place in a list": _steps(_call("a", "say", "{{item.[0]}}", "withItems: [[1, 2]]")),
    "items: without a loop": _steps(_call("a", "say", "{{item}}")),
    "items: a key without a loop": _steps(_call("a", "say", "{{item.k}}")),
    "items: of an earlier step": _steps(
        _call("a", "say", "{{item.k}}", "withItems: [{k: 1}]"), _call("b", "say", "{{item.k}}")
    ),
    "items: any key of a parameter": _steps(_call("a", "say", "{{item.k}}", "withParam: '[]'")),
    "items: two loops": _steps(_call("a", "say", "{{item}}", "withItems: [1], withParam: '[]'")),
    "items: none": _steps(_call("a", "ok", None, "withItems: []")),
    "sequence: count": _steps(_call("a", "say", "{{item}}", "withSequence: {count: 3}")),
    "sequence: count and end": _steps(_call("a", "ok", None, "withSequence: {count: 3, end: 4}")),
    "sequence: neither": _steps(_call("a", "ok", None, "withSequence: {start: 3}")),
    "sequence: count as text": _steps(_call("a", "ok", None, "withSequence: {count: '3'}")),
    "loop: results of scripts": _steps(
        _call("a", "code", None, "withItems: [1]"), _call("b", "say", "{{steps.a.outputs.result}}")
    ),
    "loop: outputs": _steps(
        _call("a", "say", "{{item}}", "withItems: [1]"), _call("b", "say", "{{steps.a.outputs.parameters}}")
    ),
    "loop: one output": _steps(
        _call("a", "say", "{{item}}", "withItems: [1]"), _call("b", "say", "{{steps.a.outputs.parameters.said}}")
    ),
    "loop: outputs of a sequence": _steps(
        _call("a", "say", "{{item}}", "withSequence: {count: 2}"), _call("b", "say", "{{steps.a.outputs.parameters}}")
    ),
    "loop: outputs of no loop": _steps(_call("a", "say", "x"), _call("b", "say", "{{steps.a.outputs.parameters}}")),
    "loop in a task": _dag(_call("a", "say", "{{item}}", "withItems: [1]")),
    "loop in a task: a key that the items lack": _dag(_call("a", "say", "{{item.z}}", "withItems: [{k: 1}]")),
    "loop in a task: items of another": _dag(
        _call("a", "say", "{{item.k}}", "withItems: [{k: 1}]"), _call("b", "say", "{{item.k}}")
    ),
}
DAG_CASES = {
    "dag: outputs of an ancestor": _dag(
        _call("a", "say", "x"), _call("b", "say", "{{tasks.a.outputs.parameters.said}}", "depends: a")
    ),
    "dag: outputs without dependency": _dag(
        _call("a", "say", "x"), _call("b", "say", "{{tasks.a.outputs.parameters.said}}")
    ),
    "dag: outputs within a text without dependency": _dag(
        _call("a", "say", "x"), _call("b", "say", "t {{tasks.a.outputs.parameters.said}}")
    ),
    "dag: outputs of a descendant": _dag(
        _call("a", "say", "{{tasks.b.outputs.parameters.said}}"), _call("b", "say", "x", "depends: a")
    ),
    "dag: undeclared outputs": _dag(
        _call("a", "say", "x"), _call("b", "say", "{{tasks.a.outputs.parameters.no}}", "depends: a")
    ),
    "dag: outputs of a grandparent": _dag(
        _call("a", "say", "x"),
        _call("b", "ok", None, "depends: a"),
        _call("c", "say", "{{tasks.a.outputs.parameters.said}}", "depends: b"),
    ),
    "dag: status of an ancestor": _dag(_call("a", "ok"), _call("b", "say", "{{tasks.a.status}}", "depends: a")),
    "dag: status of no ancestor": _dag(_call("a", "ok"), _call("b", "say", "x {{tasks.a.status}}")),
    "dag: an artifact of an ancestor": _dag(
        _call("a", "make"),
        "{name: b, template: take, depends: a, arguments: {artifacts: [{name: file, from: '{{tasks.a.outputs.artifacts.file}}'}]}}",
    ),
    "dag: an artifact without dependency": _dag(
        _call("a", "make"),
        "{name: b, template: take, arguments: {artifacts: [{name: file, from: '{{tasks.a.outputs.artifacts.file}}'}]}}",
    ),
    "dag: an artifact is missing": _dag(_call("a", "take")),
    "dag: an argument is missing": _dag(_call("a", "say")),
    "dag: duplicate arguments": _dag(
        "{name: a, template: say, arguments: {parameters: [{name: text, value: a}, {name: text, value: b}]}}"
    ),
    "dag: depends and dependencies": _dag(_call("a", "ok"), _call("b", "ok", None, "depends: a, dependencies: [a]")),
    "dag: depends here and dependencies there": _dag(
        _call("a", "ok"), _call("b", "ok", None, "depends: a"), _call("c", "ok", None, "dependencies: [a]")
    ),
    "dag: digit first": _dag(_call("1a", "ok"), _call("b", "ok")),
    "dag: digit first with depends": _dag(_call("1a", "ok"), _call("b", "ok", None, "depends: 1a")),
    "dag: digit first with dependencies elsewhere": _dag(
        _call("1a", "ok"), _call("b", "ok", None, "dependencies: [1a]")
    ),
    "dag: digit first has dependencies": _dag(_call("a", "ok"), _call("1b", "ok", None, "dependencies: [a]")),
    "dag: names with _": _dag(_call("a_b", "ok")),
    "dag: name twice": _dag(_call("a", "ok"), _call("a", "ok")),
    "dag: no name": _dag("{template: ok}"),
    "dag: no tasks": "- {name: main, dag: {tasks: []}}",
    "dag: a circle": _dag(_call("a", "ok", None, "depends: b"), _call("b", "ok", None, "depends: a")),
    "dag: itself": _dag(_call("a", "ok", None, "depends: a")),
    "dag: unknown dependency": _dag(_call("a", "ok", None, "depends: zz")),
    "dag: unknown in dependencies": _dag(_call("a", "ok", None, "dependencies: [zz]")),
    "dag: an unknown result": _dag(_call("a", "ok"), _call("b", "ok", None, "depends: a.Done")),
    "dag: every result": _dag(
        _call("a", "ok"),
        _call("b", "ok", None, "depends: 'a.Succeeded || a.Failed || a.Errored || a.Skipped || a.Omitted'"),
    ),
    "dag: AnySucceeded of a loop": _dag(
        _call("a", "ok", None, "withItems: [1]"), _call("b", "ok", None, "depends: a.AnySucceeded")
    ),
    "dag: AnySucceeded of no loop": _dag(_call("a", "ok"), _call("b", "ok", None, "depends: a.AnySucceeded")),
    "dag: AllFailed of no loop": _dag(_call("a", "ok"), _call("b", "ok", None, "depends: 'a.AllFailed || a'")),
    "dag: not an expression": _dag(_call("a", "ok"), _call("b", "ok", None, "depends: 'a &&'")),
    "dag: continueOn and depends": _dag(
        _call("a", "ok", None, "continueOn: {failed: true}"), _call("b", "ok", None, "depends: a")
    ),
    "dag: continueOn and dependencies": _dag(
        _call("a", "ok", None, "continueOn: {failed: true}"), _call("b", "ok", None, "dependencies: [a]")
    ),
    "dag: target": _dag(_call("a", "ok"), more="target: a, "),
    "dag: unknown target": _dag(_call("a", "ok"), more="target: zz, "),
    "dag: two targets": _dag(_call("a", "ok"), _call("b", "ok"), more="target: a b, "),
    "dag: target with a tag": "- {name: main, inputs: {parameters: [{name: t, value: a}]}, dag: {target: '{{inputs.parameters.t}}', tasks: [{name: a, template: ok}]}}",
    "dag: target of the workflow": "spec: {entrypoint: main, arguments: {parameters: [{name: t, value: a}]}, templates: [{name: main, dag: {target: '{{workflow.parameters.t}}', tasks: [{name: a, template: ok}]}}, {name: ok, @C}]}",
    "dag: deadline": "- {name: main, activeDeadlineSeconds: 5, dag: {tasks: [{name: a, template: ok}]}}",
    "dag: timeout": "- {name: main, timeout: 5s, dag: {tasks: [{name: a, template: ok}]}}",
    "dag: outputs of the template": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {parameter: '{{tasks.a.outputs.result}}'}}]}, dag: {tasks: [{name: a, template: code}]}}",
    "dag: no such template": _dag(_call("a", "zz")),
    "dag: the name": _dag(_call("a", "say", "{{tasks.name}}")),
    "dag: when of an ancestor": _dag(
        _call("a", "code"), _call("b", "ok", None, "depends: a, when: '{{tasks.a.outputs.result}} == 1'")
    ),
    "dag: when of nobody": _dag(_call("b", "ok", None, "when: '{{tasks.a.outputs.result}} == 1'")),
    "dag: failFast": _dag(_call("a", "ok"), more="failFast: false, "),
    "dag: a hook without expression": _dag(_call("a", "ok", None, "hooks: {late: {template: ok}}")),
    "dag: a hook with expression": _dag(_call("a", "ok", None, "hooks: {late: {template: ok, expression: 'true'}}")),
    "dag: an exit hook": _dag(_call("a", "ok", None, "hooks: {exit: {template: ok}}")),
    "dag: an exit hook with its output": _dag(
        _call(
            "a",
            "say",
            "x",
            "hooks: {exit: {template: say, arguments: {parameters: [{name: text, value: '{{tasks.a.outputs.parameters.said}}'}]}}}",
        )
    ),
    "dag: an exit hook without its template": _dag(_call("a", "ok", None, "hooks: {exit: {template: zz}}")),
    "dag: onExit": _dag(_call("a", "ok", None, "onExit: ok")),
}
LEAF_CASES = {
    "plain": _main(""),
    "no image": "- {name: main, container: {command: [x]}}",
    "no image in a script": "- {name: main, script: {command: [sh], source: x}}",
    "an image by default": "spec: {entrypoint: main, templateDefaults: {container: {image: i}}, templates: [{name: main, container: {command: [x]}}]}",
    "no command": "- {name: main, container: {image: i}}",
    "whole-number timeout": _main("timeout: '5', "),
    "timeout as a number": _main("timeout: 5, "),
    "timeout": _main("timeout: 5s, "),
    "timeout that is none": _main("timeout: soon, "),
    "timeout of a suspend": "- {name: main, timeout: 5s, suspend: {duration: 1s}}",
    "suspend": "- {name: main, suspend: {duration: '1'}}",
    "suspend for a number": "- {name: main, suspend: {duration: 1}}",
    "parallelism on a leaf": _main("parallelism: 2, "),
    "deadline": _main("activeDeadlineSeconds: 5, "),
    "deadline in quotes": _main("activeDeadlineSeconds: '5', "),
    "deadline below zero": _main("activeDeadlineSeconds: -5, "),
    "deadline that is none": _main("activeDeadlineSeconds: soon, "),
    "deadline with a tag": _main(IN + "activeDeadlineSeconds: '{{inputs.parameters.p}}', "),
    "two kinds": "- {name: main, suspend: {}, @C}",
    "no kind": "- {name: main}",
    "dag of nothing": "- {name: main, dag: {}}",
    "unknown field": "- {name: main, contaner: {image: i}}",
    "unknown field in a container": "- {name: main, container: {image: i, comand: [x]}}",
    "unknown field in a step": "- {name: main, steps: [[{name: a, template: ok, dependson: b}]]}",
    "a number as an argument": "- {name: main, container: {image: i, command: [x], args: [1]}}",
    "a boolean for a name": "- {name: y, @C}",
    "a number as a value": _main("inputs: {parameters: [{name: p, value: 1.50}]}, "),
    "a map as a value": _main("inputs: {parameters: [{name: p, value: {a: 1}}]}, "),
    "env is no text": "- {name: main, container: {image: i, command: [x], env: [{name: A, value: 1}]}}",
    "a quantity that is none": "- {name: main, container: {image: i, command: [x], resources: {limits: {cpu: lots}}}}",
    "a quantity": "- {name: main, container: {image: i, command: [x], resources: {limits: {cpu: 1, memory: 1.5Gi}}}}",
    "a label that is no text": _main("metadata: {labels: {a: 1}}, "),
    "retry policy": _main("retryStrategy: {limit: 1, retryPolicy: Always}, "),
    "retry policy that is none": _main("retryStrategy: {retryPolicy: Sometimes}, "),
    "retry limit in quotes": _main("retryStrategy: {limit: '2'}, "),
    "retry limit that is none": _main("retryStrategy: {limit: many}, "),
    "retry expression that is none": _main("retryStrategy: {expression: 'a =='}, "),
    "retry expression with a tag": _main(
        IN + "retryStrategy: {limit: 1, expression: \"'{{inputs.parameters.p}}' == 'v'\"}, "
    ),
    "retries": _tag("retries", "retryStrategy: {limit: 1}, "),
    "retries without a strategy": _tag("retries"),
    "lastRetry without a strategy": _tag("lastRetry.exitCode"),
    "an input": _tag("inputs.parameters.p", IN),
    "an input with blanks": _tag(" inputs.parameters.p ", IN),
    "an input that is not there": _tag("inputs.parameters.q"),
    "all inputs": _tag("inputs.parameters", IN),
    "all inputs of none": _tag("inputs.parameters"),
    "an input without a value": _main("inputs: {parameters: [{name: p}]}, "),
    "an input of another template": "- {name: other, inputs: {parameters: [{name: p}]}, @C}\n" + _main(""),
    "an input's name twice": _main("inputs: {parameters: [{name: p, value: a}, {name: p, value: b}]}, "),
    "an input's name with a dot": _main("inputs: {parameters: [{name: a.b, value: a}]}, "),
    "an input's name with _": _main("inputs: {parameters: [{name: a_b, value: a}]}, "),
    "an input of empty text": _main("inputs: {parameters: [{name: p, value: ''}]}, "),
    "an input from a path": _main("inputs: {parameters: [{name: p, valueFrom: {path: /x}}]}, "),
    "pod.name": _tag("pod.name"),
    "pod.uid": _tag("pod.uid"),
    "node.name": _tag("node.name"),
    "outputs path": _tag(
        "outputs.parameters.o.path", "outputs: {parameters: [{name: o, valueFrom: {path: /tmp/o}}]}, "
    ),
    "outputs path that is none": _tag("outputs.parameters.z.path"),
    "steps in a container": _tag("steps.a.outputs.result"),
    "item in a container": _tag("item"),
    "item's key in a container": _tag("item.k"),
    "an unknown tag": _tag("hello.world"),
    "an unknown function": _tag("=zz(1)"),
    "a broken expression": _tag("=1 +"),
    "an expression": _tag("=1 + 1"),
    "a tag that is not closed": _main("", "['{{steps.a.outputs']"),
    "braces that are not closed": _main("", "['{{ hello']"),
    "an empty tag": _tag(""),
    "a tag in a tag": _main(
        "inputs: {parameters: [{name: p, value: v}]}, ", "['{{workflow.parameters.{{inputs.parameters.p}}}}']"
    ),
    "a tag in a label": _main("metadata: {labels: {'{{inputs.parameters.q}}': a}}, "),
    "sprig": _tag("=sprig.trim('x')"),
    "outputs: no source": _main("outputs: {parameters: [{name: o}]}, "),
    "outputs: two sources": _main("outputs: {parameters: [{name: o, valueFrom: {path: /x, expression: '1'}}]}, "),
    "outputs: value and source": _main("outputs: {parameters: [{name: o, value: a, valueFrom: {path: /tmp/x}}]}, "),
    "outputs: a value": _main("outputs: {parameters: [{name: o, value: a}]}, "),
    "outputs: an empty source": _main("outputs: {parameters: [{name: o, valueFrom: {}}]}, "),
    "outputs: a default only": _main("outputs: {parameters: [{name: o, valueFrom: {default: a}}]}, "),
    "outputs: of a parameter": _main("outputs: {parameters: [{name: o, valueFrom: {parameter: a}}]}, "),
    "outputs: supplied": "- {name: main, outputs: {parameters: [{name: o, valueFrom: {supplied: {}}}]}, suspend: {duration: 1s}}",
    "outputs: name twice": _main("outputs: {parameters: [{name: o, value: a}, {name: o, value: a}]}, "),
    "outputs: a global name": _main("outputs: {parameters: [{name: o, globalName: g, valueFrom: {path: /tmp/x}}]}, "),
    "outputs: a global name with a blank": _main(
        "outputs: {parameters: [{name: o, globalName: g g, valueFrom: {path: /tmp/x}}]}, "
    ),
    "outputs: an unknown input": _main(
        "outputs: {parameters: [{name: o, valueFrom: {path: '/tmp/{{inputs.parameters.q}}'}}]}, "
    ),
    "artifacts: no path": _main("inputs: {artifacts: [{name: a, raw: {data: x}}]}, "),
    "artifacts: raw": _main("inputs: {artifacts: [{name: a, path: /tmp/a, raw: {data: x}}]}, "),
    "artifacts: nobody supplies it": _main("inputs: {artifacts: [{name: a, path: /tmp/a}]}, "),
    "artifacts: s3": _main("inputs: {artifacts: [{name: a, path: /tmp/a, s3: {key: k}}]}, "),
    "artifacts: s3 without a key": _main("inputs: {artifacts: [{name: a, path: /tmp/a, s3: {bucket: k}}]}, "),
    "artifacts: from in inputs": _main(
        "inputs: {artifacts: [{name: a, path: /tmp/a, from: '{{steps.x.outputs.artifacts.a}}'}]}, "
    ),
    "artifacts: out of its folder": _main("outputs: {artifacts: [{name: a, path: /tmp/safe/../../etc}]}, "),
    "artifacts: within its folder": _main("outputs: {artifacts: [{name: a, path: /tmp/safe/../safe/b}]}, "),
    "artifacts: on a mount": "- {name: main, inputs: {artifacts: [{name: a, path: /data, raw: {data: x}}]}, volumes: [{name: v, emptyDir: {}}], container: {image: i, command: [x], volumeMounts: [{name: v, mountPath: /data}]}}",
    "mounts: twice": "- {name: main, volumes: [{name: v, emptyDir: {}}], container: {image: i, command: [x], volumeMounts: [{name: v, mountPath: /data}, {name: v, mountPath: /data}]}}",
    "mounts: no such volume": "- {name: main, container: {image: i, command: [x], volumeMounts: [{name: v, mountPath: /data}]}}",
    "metrics": _main("metrics: {prometheus: [{name: a_b, help: h, counter: {value: '1'}}]}, "),
    "metrics: a name with -": _main("metrics: {prometheus: [{name: a-b, help: h, counter: {value: '1'}}]}, "),
    "metrics: no help": _main("metrics: {prometheus: [{name: a, counter: {value: '1'}}]}, "),
    "metrics: no value": _main("metrics: {prometheus: [{name: a, help: h, gauge: {}}]}, "),
    "metrics: a label": _main(
        "metrics: {prometheus: [{name: a, help: h, labels: [{key: a.b, value: x}], counter: {value: '1'}}]}, "
    ),
    "metrics: their own names": _main(
        "metrics: {prometheus: [{name: a, help: h, gauge: {value: '{{duration}} {{outputs.result}}'}}]}, "
    ),
    "podSpecPatch": _main("podSpecPatch: '{terminationGracePeriodSeconds: 5}', "),
    "podSpecPatch with a tag": _main(IN + "podSpecPatch: '{terminationGracePeriodSeconds: {{inputs.parameters.p}}}', "),
    "an init container without a name": _main("initContainers: [{image: i}], "),
    "a name with _": "- {name: a_b, @C}\n" + _main(""),
    "a name with a dot": "- {name: a.b, @C}\n" + _main(""),
    "a name twice": "- {name: ok, @C}\n" + _main(""),
    "a template without a name": "- {@C}\n" + _main(""),
    "a template that nobody calls is wrong": "- {name: lost, container: {image: i, command: ['{{inputs.parameters.q}}']}}\n"
    + _main(""),
    "a reference": _steps(
        "{name: a, templateRef: {name: lib, template: echo}, arguments: {parameters: [{name: text, value: x}]}}",
        _call("b", "say", "{{steps.a.outputs.parameters.said}}"),
    ),
    "a reference into its own manifest": _steps("{name: a, templateRef: {name: lib, template: own}}"),
    "a reference without its argument": _steps("{name: a, templateRef: {name: lib, template: echo}}"),
    "a reference to no manifest": _steps("{name: a, templateRef: {name: zz, template: echo}}"),
    "a reference to no template": _steps("{name: a, templateRef: {name: lib, template: zz}}"),
    "a reference to a broken template": _steps("{name: a, templateRef: {name: broken, template: bad}}"),
    "a reference to a bare template": _steps("{name: a, templateRef: {name: broken, template: bare}}"),
    "a reference to a template imaged by default": _steps("{name: a, templateRef: {name: imaged, template: bare}}"),
    "a reference and a template": _steps("{name: a, template: ok, templateRef: {name: lib, template: own}}"),
    "a reference with a tag": _steps("{name: a, templateRef: {name: lib, template: '{{workflow.name}}'}}"),
    "a reference without a template": _steps("{name: a, templateRef: {name: lib}}"),
}
_ONE = ", templates: [{name: main, @C}]}"
SPEC_CASES = {
    "spec: no entrypoint": "spec: {templates: [{name: main, @C}]}",
    "spec: an unknown entrypoint": "spec: {entrypoint: zz" + _ONE,
    "spec: no templates": "spec: {entrypoint: main}",
    "spec: an unknown field": "spec: {entrypoint: main, entrpoint: x" + _ONE,
    "spec: entrypoint with an argument": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: a}]}, templates: [{name: main, inputs: {parameters: [{name: p}]}, @C}]}",
    "spec: entrypoint without its argument": "spec: {entrypoint: main, templates: [{name: main, inputs: {parameters: [{name: p}]}, @C}]}",
    "spec: duplicate parameters": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: a}, {name: p, value: b}]}"
    + _ONE,
    "spec: a parameter outside its enum": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: c, enum: [a, b]}]}"
    + _ONE,
    "spec: a parameter of its enum": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: 1, enum: ['1', b]}]}"
    + _ONE,
    "spec: an empty enum": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: c, enum: []}]}" + _ONE,
    "spec: an artifact from nowhere": "spec: {entrypoint: main, arguments: {artifacts: [{name: a}]}" + _ONE,
    "spec: a raw artifact for the entrypoint": "spec: {entrypoint: main, arguments: {artifacts: [{name: a, raw: {data: x}}]}, templates: [{name: main, inputs: {artifacts: [{name: a, path: /tmp/a}]}, @C}]}",
    "workflow: parameters": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: a}]}, templates: [{name: main, container: {image: i, command: ['{{workflow.parameters.p}} {{workflow.parameters}} {{workflow.parameters.json}}']}}]}",
    "workflow: an unknown parameter": _tag("workflow.parameters.zz"),
    "workflow: parameters of none": _tag("workflow.parameters"),
    "workflow: facts": _tag(
        "workflow.name}} {{workflow.uid}} {{workflow.namespace}} {{workflow.serviceAccountName}} {{workflow.creationTimestamp.Y}} {{workflow.status}} {{workflow.duration}} {{workflow.mainEntrypoint"
    ),
    "workflow: an unknown fact": _tag("workflow.zz"),
    "workflow: priority of none": _tag("workflow.priority"),
    "workflow: priority": "spec: {entrypoint: main, priority: 1, templates: [{name: main, container: {image: i, command: ['{{workflow.priority}}']}}]}",
    "workflow: an unknown label": _tag("workflow.labels.zz"),
    "workflow: all labels": _tag("workflow.labels"),
    "workflow: an unknown annotation": _tag("workflow.annotations.zz"),
    "workflow: a label of workflowMetadata": "spec: {entrypoint: main, workflowMetadata: {labels: {a: b}}, templates: [{name: main, container: {image: i, command: ['{{workflow.labels.a}}']}}]}",
    "workflow: a label of labelsFrom": "spec: {entrypoint: main, workflowMetadata: {labelsFrom: {a: {expression: \"'b'\"}}}, templates: [{name: main, container: {image: i, command: ['{{workflow.labels.a}}']}}]}",
    "workflow: failures in main": _tag("workflow.failures"),
    "workflow: failures in onExit": "spec: {entrypoint: main, onExit: out, templates: [{name: main, @C}, {name: out, container: {image: i, command: ['{{workflow.failures}}']}}]}",
    "workflow: an output that is made global": "- {name: glob, outputs: {parameters: [{name: o, globalName: g, valueFrom: {path: /tmp/x}}]}, @C}\n"
    + _steps(_call("a", "glob"), _call("b", "say", "{{workflow.outputs.parameters.g}}")),
    "workflow: an output that nobody makes": _steps(_call("b", "say", "{{workflow.outputs.parameters.g}}")),
    "onExit: unknown": "spec: {entrypoint: main, onExit: zz" + _ONE,
    "onExit: with the workflow's arguments": "spec: {entrypoint: main, onExit: out, arguments: {parameters: [{name: p, value: a}]}, templates: [{name: main, @C}, {name: out, inputs: {parameters: [{name: p}]}, @C}]}",
    "onExit: without its argument": "spec: {entrypoint: main, onExit: out, templates: [{name: main, @C}, {name: out, inputs: {parameters: [{name: p}]}, @C}]}",
    "hooks: exit": "spec: {entrypoint: main, hooks: {exit: {template: main}}" + _ONE,
    "hooks: exit of an unknown template": "spec: {entrypoint: main, hooks: {exit: {template: zz}}" + _ONE,
    "hooks: without expression": "spec: {entrypoint: main, hooks: {late: {template: main}}" + _ONE,
    "hooks: with expression": "spec: {entrypoint: main, hooks: {late: {template: main, expression: 'true'}}" + _ONE,
    "podGC": "spec: {entrypoint: main, podGC: {strategy: OnPodSuccess}" + _ONE,
    "podGC: unknown": "spec: {entrypoint: main, podGC: {strategy: Sometimes}" + _ONE,
    "podGC: a selector that is none": "spec: {entrypoint: main, podGC: {strategy: OnPodSuccess, labelSelector: {matchExpressions: [{key: a, operator: Zz}]}}"
    + _ONE,
    "defaults: a container": "spec: {entrypoint: main, templateDefaults: {container: {imagePullPolicy: Always}}" + _ONE,
    "defaults: a timeout": "spec: {entrypoint: main, templateDefaults: {timeout: '5'}" + _ONE,
    "template reference": "spec: {workflowTemplateRef: {name: lib}}",
    "template reference: another entrypoint": "spec: {entrypoint: own, workflowTemplateRef: {name: lib}}",
    "template reference: an unknown entrypoint": "spec: {entrypoint: zz, workflowTemplateRef: {name: lib}}",
    "template reference: templates beside it": "spec: {workflowTemplateRef: {name: lib}" + _ONE,
    "template reference: unknown": "spec: {workflowTemplateRef: {name: zz}}",
    "template reference: broken": "spec: {workflowTemplateRef: {name: broken}}",
    "parallelism that is none": "spec: {entrypoint: main, parallelism: many" + _ONE,
    "a control character": "spec: {entrypoint: main, arguments: {parameters: [{name: p, value: \"a\\u0001b\"}]}, templates: [{name: main, container: {image: i, command: ['{{workflow.parameters.p}}']}}]}",
    "the old mutex": _main("synchronization: {mutex: {name: a}}, "),
    "mutexes": _main("synchronization: {mutexes: [{name: a}]}, "),
}
CASES = STEP_CASES | LOOP_CASES | DAG_CASES | LEAF_CASES | SPEC_CASES


def manifest(name: str) -> bytes:
    """The YAML of a case."""
    text = CASES[name]
    if not text.startswith("spec:"):
        templates = textwrap.indent(f"{text}\n{STOCK.strip()}", "  ")
        text = f"spec:\n  entrypoint: main\n  templates:\n{templates}"
    head = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: wf}\n"
    return with_containers(head + text + "\n")


def with_containers(text: str) -> bytes:
    """``@C`` written out."""
    return text.replace("@C", "container: {image: i, command: [x]}").encode()
