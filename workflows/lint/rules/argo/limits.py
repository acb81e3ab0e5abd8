"""What Argo Workflows 4 caps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule

_TEMPLATES: Final = 200
_TASKS: Final = 200
_PARAMETERS: Final = 500


@rule("ARGO027", Level.ERROR, on=Document)
def caps(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The full CRDs of 4.0 refuse more than so many templates, tasks and parameters."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    counted = [
        (workflow.spec["templates"], _TEMPLATES, "templates"),
        (workflow.spec.at("arguments.parameters"), _PARAMETERS, "parameters"),
        *((each.node.at("dag.tasks"), _TASKS, "tasks in one DAG") for each in workflow.templates),
        *((each.node.at("inputs.parameters"), _PARAMETERS, "parameters") for each in workflow.templates),
    ]
    for node, most, what in counted:
        count = len(node.items)
        if count > most:
            yield Problem(
                node,
                f"{count} {what}, and Argo Workflows 4 takes {most}",
                "use a loop (withItems, withSequence), or a second WorkflowTemplate",
            )


@rule("ARGO028", Level.ERROR, on=Document)
def timeout(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """``timeout`` is for templates that run a pod."""
    workflow = bundle.argo(document)
    for template in workflow.templates if workflow is not None else ():
        if template.kind in ("dag", "steps") and template.node["timeout"]:
            yield Problem(
                template.node["timeout"],
                f"timeout on a {template.kind} template, which Argo Workflows refuses",
                "set activeDeadlineSeconds on the workflow, or timeout on the templates that run",
            )
