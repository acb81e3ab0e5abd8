"""Resource templates: objects that a workflow makes, and that outlive it."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import AddKey, Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow, Template
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.outcome import outcome


def resource_templates(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[tuple[Template, Node, Document | None]]:
    """(template, its ``resource``, the object in its manifest) of a workflow."""
    for template in workflow.templates:
        resource = template.node["resource"]
        if resource.is_mapping:
            yield template, resource, next(iter(bundle.nested(workflow.document, resource["manifest"])), None)


def _makes(resource: Node) -> bool:
    return resource["action"].text in ("create", "apply")


@rule("ARGO019", Level.WARNING, on=ArgoWorkflow)
def left_behind(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """Without an owner the object stays when the workflow is deleted."""
    for _, resource, made in resource_templates(workflow, bundle):
        owned = resource["setOwnerReference"]
        if not _makes(resource) or made is None or owned.flag or owned.open or outcome(made) is None:
            continue
        if made.metadata["ownerReferences"]:  # written out, with {{workflow.uid}}
            continue
        yield Problem(
            resource["setOwnerReference"] if resource["setOwnerReference"].exists else resource["action"],
            f"the {made.kind} does not belong to the workflow: it runs on when that is deleted or expires",
            "set setOwnerReference: true, and delete it in an exit handler, for what is stopped runs on until then",
            edits=[] if resource["setOwnerReference"].exists else [AddKey(resource, "setOwnerReference", True)],
        )


@rule("ARGO020", Level.WARNING, on=ArgoWorkflow)
def fixed_name(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """A second ``create`` of the same name fails."""
    made_again = workflow.document.kind != "Workflow"
    for template, resource, made in resource_templates(workflow, bundle):
        if resource["action"].text != "create" or made is None:
            continue
        name = made.metadata["name"]
        if not name.text or "{{" in _raw_line(resource["manifest"], name) or made.metadata["generateName"]:
            continue
        retried = template.retry.exists
        yield Problem(
            resource["manifest"],
            f"the {made.kind} is always named {name.text!r}: "
            + ("a retry" if retried else "a second run of this workflow")
            + " fails with AlreadyExists while the first one may still run",
            "put {{workflow.uid}}, and {{retries}} where it is retried, into the name",
            inside=name.text,
            level=Level.WARNING if retried or made_again else Level.NOTE,
        )


def _raw_line(manifest: Node, value: Node) -> str:
    """The manifest's own text of a value's line: reading put a placeholder for ``{{…}}`` there."""
    lines = manifest.text.split("\n")
    index = value.line - value.origin.line - 1
    return lines[index] if 0 <= index < len(lines) else ""


@rule("ARGO022", Level.WARNING, on=ArgoWorkflow)
def no_conditions(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """Without conditions a create is done when the object is made, without a failure condition it waits for ever."""
    for _, resource, made in resource_templates(workflow, bundle):
        success, failure = resource["successCondition"], resource["failureCondition"]
        known = outcome(made) if made is not None else None
        if known is None or made is None or not _makes(resource):
            continue
        if success and not failure:
            yield Problem(
                success,
                f"a successCondition without a failureCondition: a {made.kind} that fails is waited for without end",
                f"add failureCondition: {known.failure}" if known.failure else "wait for its JobSet in a second step",
            )
        elif not success and not failure:
            yield Problem(
                resource["action"],
                f"no conditions: the step succeeds as soon as the {made.kind} is made, and what follows does not wait",
                f"add successCondition: {known.success} and failureCondition: {known.failure}"
                if known.success
                else f"wait in a second step (action: get) for the JobSet that the {made.kind} makes",
                level=Level.NOTE if _awaited(workflow, bundle) else Level.WARNING,
            )


def _awaited(workflow: ArgoWorkflow, bundle: Bundle) -> bool:
    """Whether another template of the workflow waits: create and get are two steps, so that a retry finds the gang."""
    return any(
        resource["action"].text == "get" and resource["successCondition"]
        for _, resource, _ in resource_templates(workflow, bundle)
    )
