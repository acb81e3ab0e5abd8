"""``{{…}}``: variables that exist where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow, Tag, Template, tags

# https://argo-workflows.readthedocs.io/en/latest/variables/
_WORDS: Final = (
    *("inputs", "outputs", "workflow", "steps", "tasks", "item", "pod", "node", "retries", "lastRetry", "status"),
    *("duration", "exitCode", "resourcesDuration", "cronworkflow", "random"),
)
_WORKFLOW: Final = (
    *("name", "namespace", "mainEntrypoint", "serviceAccountName", "uid", "parameters", "annotations", "labels"),
    *("creationTimestamp", "priority", "duration", "scheduledTime", "status", "failures", "outputs"),
)


@rule("ARGO008", Level.ERROR, on=ArgoWorkflow)
def unknown_input(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """A template knows its own inputs."""
    for template in _judged(workflow):
        for tag in _own_tags(template):
            kind, name = (tag.parts[1], tag.parts[2]) if len(tag.parts) > 2 else ("", "")
            if tag.parts[0] != "inputs" or kind not in ("parameters", "artifacts"):
                continue
            held = template.inputs if kind == "parameters" else template.artifacts
            if name not in held:
                close = get_close_matches(name, list(held), 1)
                yield Problem(
                    tag.node,
                    f"{tag.text}: the template {template.name!r} has no input {name!r}, and Argo cannot resolve it",
                    f"write {close[0]!r}" if close else f"add {name!r} to inputs.{kind} and pass it",
                    inside=tag.text,
                )


def _judged(workflow: ArgoWorkflow) -> list[Template]:
    """The templates whose variables are known; one inside a task also sees those of the template around it."""
    whole = workflow is not None and workflow.resolved and any(each.kind for each in workflow.templates)
    return [each for each in workflow.templates if each.name] if whole else []


def _own_tags(template: Template) -> Iterator[Tag]:
    """The tags of a template without those of templates that stand inside its tasks."""
    inline = {id(call.node["inline"].yaml) for call in template.calls if call.node["inline"]}
    if not inline:
        yield from tags(template.node)
        return
    for key, value in template.node.entries.items():
        if key not in ("dag", "steps"):
            yield from tags(value)
    for call in template.calls:
        for key, value in call.node.entries.items():
            if key != "inline":
                yield from tags(value)


@rule("ARGO009", Level.WARNING, on=ArgoWorkflow)
def unknown_parameter(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """``workflow.parameters.x`` is an argument of the workflow."""
    if workflow.refers or not workflow.resolved:
        return
    library = workflow.document.kind in ("WorkflowTemplate", "ClusterWorkflowTemplate")
    if library and not workflow.spec["entrypoint"]:
        return  # its templates run in workflows that have arguments of their own
    seen = set()
    for tag in tags(workflow.spec):
        parts = tag.parts
        if parts[:2] != ["workflow", "parameters"] or len(parts) < 3 or parts[2] in {*workflow.parameters, "json"}:
            continue
        if parts[2] in seen:
            continue
        seen.add(parts[2])
        close = get_close_matches(parts[2], list(workflow.parameters), 1)
        yield Problem(
            tag.node,
            f"{tag.text}: the workflow has no argument {parts[2]!r}, unless argo submit -p or the defaults bring it",
            f"write {close[0]!r}" if close else f"add {parts[2]!r} to spec.arguments.parameters",
            inside=tag.text,
            level=Level.NOTE if library else None,
        )


@rule("ARGO010", Level.ERROR, on=ArgoWorkflow)
def unknown_variable(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """The first word of a variable, and the second of ``workflow``."""
    if not workflow.resolved:
        return
    for tag in tags(workflow.spec):
        first = tag.parts[0]
        if not first.replace("-", "").replace("_", "").isalnum():
            continue  # another language's braces: Jinja, Go
        if first not in _WORDS:
            yield _unknown(tag, first, _WORDS)
        elif first == "workflow" and len(tag.parts) > 1 and tag.parts[1] not in _WORKFLOW:
            yield _unknown(tag, tag.parts[1], _WORKFLOW)


def _unknown(tag: Tag, word: str, words: tuple[str, ...]) -> Problem:
    close = get_close_matches(word, words, 1, 0.75)
    return Problem(
        tag.node,
        f"{tag.text}: Argo has no variable of this name and cannot resolve it",
        f"write {tag.name.replace(word, close[0], 1)}" if close else "pass it as a parameter, or take it out",
        inside=tag.text,
        level=Level.ERROR if close else Level.WARNING,
    )


@rule("ARGO011", Level.ERROR, on=ArgoWorkflow)
def other_steps(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """Outputs of a step or task are known where it is called, and only what its template hands on."""
    for template in _judged(workflow):
        for tag in _own_tags(template):
            if tag.parts[0] in ("steps", "tasks") and len(tag.parts) > 2:
                message = _of_another(tag, template, workflow)
                if message:
                    yield Problem(
                        tag.node,
                        f"{tag.text}: {message}, and Argo cannot resolve it",
                        "pass it as an argument from where the step is called, and name what the template hands on",
                        inside=tag.text,
                    )


def _of_another(tag: Tag, template: Template, workflow: ArgoWorkflow) -> str:
    expected = {"dag": "tasks", "steps": "steps"}.get(template.kind, "")
    if not expected:
        return f"a {template.kind or 'leaf'} template knows no {tag.parts[0]}"
    if tag.parts[0] != expected:
        return f"a {template.kind} template speaks of {expected}.…"
    called = next((call for call in template.calls if call.name == tag.parts[1]), None)
    if called is None:
        return f"{template.name!r} has no step or task {tag.parts[1]!r}"
    target = workflow.of(called)
    part = ".".join(tag.parts[3:5])
    if target is None or tag.parts[2] != "outputs" or tag.parts[3:4] not in (["parameters"], ["artifacts"]):
        return ""
    if len(tag.parts) > 4 and part not in target.outputs:
        have = ", ".join(sorted(target.outputs)) or "nothing"
        return f"the template {target.name!r} hands on no {part} (it hands on: {have})"
    return ""
