"""The shape of templates."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.argo.resources import resource_templates
from argosy.workflows.lint.view.argo_templates import BODIES, Template
from argosy.workflows.lint.view.outcome import outcome


def _templates(document: Document, bundle: Bundle) -> list[Template]:
    workflow = bundle.argo(document)
    return workflow.templates if workflow is not None else []


@rule("ARGO029", Level.ERROR, on=Document)
def one_body(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A template is one thing."""
    for template in _templates(document, bundle):
        held = [key for key in BODIES if template.node[key].exists]
        if len(held) != 1 and not template.node["templateRef"] and not template.node["template"]:
            yield Problem(
                template.node["name"] or template.node,
                f"the template {template.name!r} has {' and '.join(held) or 'no body'}, and Argo wants exactly one",
                f"give it one of {', '.join(BODIES[:8])}",
            )


@rule("ARGO030", Level.NOTE, on=Document)
def no_command(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Without a command the controller asks the image's registry for one."""
    for template in _templates(document, bundle):
        containers = [template.node["container"], *template.node.at("containerSet.containers")]
        for container in [*containers, *template.node["sidecars"]]:
            if container.is_mapping and not container["command"]:
                yield Problem(
                    container["image"] or container,
                    f"{template.name!r} has no command: the controller has to read the image's entrypoint from its "
                    "registry, and the step fails when it may not",
                    "set command to the image's entrypoint",
                )
        script = template.node["script"]
        if script.is_mapping and not script["command"]:
            yield Problem(
                script["image"] or script,
                f"the script {template.name!r} has no command: nothing says what reads its source",
                "set command: [python] or [bash]",
                level=Level.WARNING,
            )


@rule("ARGO031", Level.WARNING, on=Document)
def too_few_at_once(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Pods that wait for each other, of which not all may run at once."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    for template in workflow.templates:
        limit = template.node["parallelism"] or workflow.spec["parallelism"]
        if limit.number is None:
            continue
        for call in template.calls:
            target = workflow.of(call)
            count = _loop_length(call.loop)
            if target is not None and count is not None and count > limit.number and target.joins_others:
                yield Problem(
                    limit,
                    f"parallelism: {limit.number} for {count} ranks of {target.name!r} that wait for each other: none "
                    "of them gets on",
                    f"raise it to {count}",
                )


def _loop_length(loop: Node) -> int | None:
    if loop.is_list:
        return len(loop.items)
    count = loop["count"].number
    start, end = loop["start"].number, loop["end"].number
    if count is None and end is not None:
        return abs(end - (start or 0)) + 1
    return count


@rule("ARGO032", Level.WARNING, on=Document)
def deadline_in_the_queue(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The deadline of a step that waits for a queued job runs while the job waits."""
    for template, resource, made in resource_templates(document, bundle):
        node = template.field("activeDeadlineSeconds")
        if not node or made is None or outcome(made) is None:
            continue
        queued = any(key.startswith("kueue.x-k8s.io/queue") for key in made.labels.entries) or made.spec["queue"]
        waits = bool(resource["successCondition"])
        if queued and waits:
            yield Problem(
                node,
                f"activeDeadlineSeconds counts while the {made.kind} waits in its queue, ends only the pod that waits "
                "for it, and leaves the job",
                f"put the deadline into the {made.kind}, whose clock stops while it is suspended",
            )
