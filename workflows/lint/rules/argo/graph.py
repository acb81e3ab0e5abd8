"""The shape of templates: their bodies, and names, order and circles of steps and tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.schema.fields import fields_of
from argosy.workflows.manifests.argo_templates import BODIES, ArgoWorkflow, Call, Template

_STATES: Final = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed")


@rule("ARGO005", Level.ERROR, on=ArgoWorkflow)
def graph(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """Steps and tasks that Argo can tell apart and bring into an order."""
    yield from _same_name(workflow)
    for template in workflow.templates:
        yield from _unknown_task(template)
        yield from _two_forms(template)
        if template.kind == "dag":
            yield from _waiting_for_each_other(template)


def _same_name(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """Names of templates, and of the steps or tasks of one template, are unique."""
    templates = workflow.templates
    groups = [("template", [each.node for each in templates if each.name])]
    groups += [("step or task", [call.node for call in each.calls]) for each in templates]
    for what, nodes in groups:
        seen: set[str] = set()
        for node in nodes:
            name = node["name"].text
            if name and name in seen and not node["name"].open:
                yield Problem(
                    node["name"],
                    f"a second {what} is named {name!r}, which Argo refuses",
                    "give each a name of its own",
                )
            seen.add(name)


def _unknown_task(template: Template) -> Iterator[Problem]:
    """A task waits for tasks of its own DAG."""
    names = {call.name for call in template.calls}
    for call in template.calls:
        for each in call.waits_for if template.kind == "dag" else ():
            if each not in names and "{{" not in call.node["depends"].text:
                node = call.node["depends"] or call.node["dependencies"]
                yield Problem(
                    node,
                    f"{call.name!r} waits for {each!r}, which is no task of {template.name!r}; Argo refuses it",
                    f"name one of: {', '.join(sorted(names - {call.name, ''}))}",
                    inside=each if node.is_scalar else "",
                )


def _waiting_for_each_other(template: Template) -> Iterator[Problem]:
    """Tasks that wait for each other never start."""
    found = _circle({call.name: call for call in template.calls})
    if found:
        first = next(call for call in template.calls if call.name == found[0])
        yield Problem(
            first.node["depends"] or first.node["dependencies"],
            f"tasks wait for each other: {' -> '.join([*found, found[0]])}; Argo refuses the DAG",
            "drop one of the dependencies",
        )


def _circle(calls: dict[str, Call]) -> list[str]:
    """The names of one circle, in order; empty without one."""
    done: set[str] = set()
    for start in calls:
        path: list[str] = []
        stack = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                path.pop()
                done.add(name)
            elif name in path:
                return path[path.index(name) :]
            elif name not in done:
                path.append(name)
                stack.append((name, True))
                stack.extend((each, False) for each in calls[name].waits_for if each in calls)
    return []


def _two_forms(template: Template) -> Iterator[Problem]:
    """``depends`` and ``dependencies`` in one DAG, or a state that does not exist."""
    with_depends = [call for call in template.calls if call.node["depends"]]
    with_list = [call for call in template.calls if call.node["dependencies"]]
    if with_depends and with_list:
        yield Problem(
            with_list[0].node["dependencies"],
            f"{template.name!r} uses depends and dependencies, and Argo takes one of them in a DAG",
            "write depends everywhere: dependencies: [a, b] is depends: a && b",
        )
    for call in with_depends:
        yield from _states(call)


def _states(call: Call) -> Iterator[Problem]:
    node = call.node["depends"]
    for word in re.findall(r"[\w-]+\.[\w-]+", node.text):
        _, dot, state = word.partition(".")
        if dot and not node.open and state not in _STATES:
            yield Problem(
                node, f"{word!r}: a task has no state {state!r}", f"write one of {', '.join(_STATES)}", inside=word
            )


@rule("ARGO029", Level.ERROR, on=ArgoWorkflow)
def one_body(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """A template is one thing; a workflow whose templates all have none is a page's, about something else."""
    keys = {key for each in workflow.templates for key in each.node.entries}
    excerpt = not keys & {*BODIES} and keys <= {*fields_of("ArgoprojV1alpha1WorkflowSpecTemplateDefaults")}
    for template in workflow.templates:
        held = [key for key in BODIES if template.node[key].exists]
        if len(held) != 1 and not template.node["templateRef"] and not template.node["template"]:
            yield Problem(
                template.node["name"] or template.node,
                f"the template {template.name!r} has {' and '.join(held) or 'no body'}, and Argo wants exactly one",
                f"give it one of {', '.join(BODIES[:8])}",
                level=Level.WARNING if excerpt else None,
            )
