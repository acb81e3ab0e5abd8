"""Parameters that are passed, and those that are not."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow, Call, Template


@rule("ARGO012", Level.ERROR, on=ArgoWorkflow)
def not_passed(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """An input without a default is passed by every call."""
    for template in workflow.templates:
        for call in template.calls:
            target = workflow.of(call)
            if target is not None:
                yield from _missing(call, target)
    if "Template" in workflow.document.kind:
        return  # who submits it or refers to it gives the arguments
    start = workflow.named.get(workflow.spec["entrypoint"].text)
    for name, node in start.inputs.items() if start is not None else ():
        if not _has_default(start, name) and name not in workflow.parameters:
            yield Problem(
                node["name"],
                f"the entrypoint's input {name!r} has no value, and no argument of the workflow has its name",
                "give it a value, or add an argument of this name to spec.arguments.parameters",
                level=Level.WARNING,  # argo submit -p may bring it
            )


def _missing(call: Call, target: Template) -> Iterator[Problem]:
    missing = [repr(name) for name in target.inputs if name not in call.parameters and not _has_default(target, name)]
    if missing:
        names = ", ".join(missing)
        yield Problem(
            call.node["name"] or call.node,
            f"{call.name!r} does not pass {names}, which the template {target.name!r} needs; Argo refuses it",
            f"add {names} to the arguments, or give the input a default",
        )
    silent = set(target.inputs) - set(call.parameters)  # a default answers where the name is misspelt
    for name, node in call.parameters.items():
        if name not in target.inputs and not node["name"].open and not target.node["templateRef"]:
            yield Problem(
                node["name"],
                f"the template {target.name!r} has no input {name!r}: what is passed is lost",
                "add it to the template's inputs, or correct the name",
                level=Level.WARNING if silent else Level.NOTE,
            )


def _has_default(template: Template | None, name: str) -> bool:
    if template is None:
        return True
    node = template.inputs[name]
    return node["value"].exists or node["default"].exists or bool(node["valueFrom"])
