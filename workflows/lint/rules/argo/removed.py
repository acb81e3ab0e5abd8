"""Fields that Argo Workflows 4.0 took away."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Edit, Level, Problem, RenameKey, SetValue
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule


@rule("ARGO026", Level.WARNING, on=Document)
def singular(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """One lock or schedule became a list of them; a pod's priority a class."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    for holder in [workflow.spec, *(template.node for template in workflow.templates)]:
        locks = holder["synchronization"]
        for old, new in (("mutex", "mutexes"), ("semaphore", "semaphores")):
            if locks[old]:
                yield _renamed(locks[old], new, [locks[old].data], locks)
    schedule = document.spec["schedule"]
    if document.kind == "CronWorkflow" and schedule:
        yield _renamed(schedule, "schedules", [schedule.text], document.spec)
    priority = workflow.spec["podPriority"]
    if priority.exists:
        yield Problem(
            priority,
            "podPriority was removed in Argo Workflows 4.0",
            "set podPriorityClassName to a PriorityClass of the cluster",
        )


def _renamed(node: Node, new: str, value: list[object], holder: Node) -> Problem:
    edits: list[Edit] = [] if holder[new].exists else [SetValue(node, value), RenameKey(node, new)]
    return Problem(
        node,
        f"{node.key} was removed in Argo Workflows 4.0, where {new} is a list",
        f"write {new} with one item",
        edits=edits,
    )
