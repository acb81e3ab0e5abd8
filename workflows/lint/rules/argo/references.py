"""Names of templates."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.schema.fields import fields_of
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node


def _near(name: str, names: object) -> str:
    known = sorted(str(each) for each in names) if isinstance(names, dict | list) else []
    close = get_close_matches(name, known, 1)
    return f"write {close[0]!r}" if close else f"name one of: {', '.join(known) or 'none is there'}"


@rule("ARGO001", Level.ERROR, on=ArgoWorkflow)
def entrypoint(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """The template that a workflow begins with, and the one that it ends with."""
    if workflow.refers or not workflow.spec:
        return
    # A page shows the templates elsewhere; a key that is misspelt is no page's.
    excerpt = {*workflow.spec.entries} <= {*fields_of("ArgoprojV1alpha1WorkflowSpec")} - {"templates"}
    for key in ("entrypoint", "onExit"):
        node = workflow.spec[key]
        if node.text and not node.open and node.text not in workflow.named:
            yield Problem(
                node,
                f"{key}: {node.text!r} is no template of this workflow, which Argo refuses",
                _near(node.text, workflow.named),
                level=Level.WARNING if excerpt else None,
            )
    if not workflow.spec["entrypoint"] and workflow.document.kind in ("Workflow", "CronWorkflow"):
        yield Problem(
            workflow.spec["entrypoint"],
            "a workflow without an entrypoint, which Argo refuses where neither argo submit nor its defaults name one",
            f"set entrypoint to the template to begin with ({', '.join(workflow.named) or 'there is none'})",
            level=Level.WARNING,
        )


@rule("ARGO002", Level.ERROR, on=ArgoWorkflow)
def unknown_template(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """A step or task names a template that is there."""
    calls = [call for each in workflow.templates for call in each.calls if not call.target.open]
    called = {
        call.target.text or call.name for call in calls if not call.node["templateRef"] and not call.node["inline"]
    }
    known = {call.target.text for call in calls} & set(workflow.named)
    if len(called) > 1 and not known:  # a guide shows the steps, and behind them what they run
        message = f"none of the templates that are called is there ({', '.join(sorted(called))}), which Argo refuses"
        yield Problem(workflow.spec["templates"], message, "write them, too", level=Level.WARNING)
        return
    for template in workflow.templates:
        for call in template.calls:
            if call.target.text and not call.target.open:
                yield from _local(call.target, workflow)
            yield from _elsewhere(call.node["templateRef"], workflow.document, bundle)
            for hook in [call.node["onExit"], *(each["template"] for each in call.node["hooks"].entries.values())]:
                if hook.text and not hook.open:
                    yield from _local(hook, workflow)
            if not any(call.node[key] for key in ("template", "templateRef", "inline")):
                yield Problem(
                    call.node["name"] or call.node,
                    f"{call.name!r} names no template",
                    "set template, templateRef or inline",
                )


def _local(target: Node, workflow: ArgoWorkflow) -> Iterator[Problem]:
    if target.text not in workflow.named:
        yield Problem(
            target, f"there is no template {target.text!r}, which Argo refuses", _near(target.text, workflow.named)
        )


def _elsewhere(reference: Node, document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A template of another object: judged only when that object is among the files."""
    name, template = reference["name"], reference["template"]
    if not name.text or name.open or template.open:
        return
    kind = "ClusterWorkflowTemplate" if reference["clusterScope"].flag else "WorkflowTemplate"
    found = bundle.find(kind, name.text, document)
    held = bundle.argo(found) if found is not None else None
    if held is None:
        return
    if template.text not in held.named:
        yield Problem(
            template, f"the {kind} {name.text!r} has no template {template.text!r}", _near(template.text, held.named)
        )
