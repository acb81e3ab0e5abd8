"""Kueue: who ends a suspension."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.queue import KUEUE_QUEUE
from argosy.workflows.manifests.workload import Workload


@rule("GANG017", Level.NOTE, on=Workload)
def nobody_resumes(workload: Workload) -> Iterator[Problem]:
    """A suspended object without a queue waits for a person."""
    run = workload.spec["runPolicy"]
    node: Node = run["suspend"] if run["suspend"] else workload.spec["suspend"]
    if node.flag is not True or workload.document.labels[KUEUE_QUEUE] or workload.family in ("argo", "other", "pod"):
        return
    if workload.spec["managedBy"] or run["managedBy"] or workload.document.kind == "CronJob":
        return
    yield Problem(
        node,
        f"suspend: true and no queue: the {workload.document.kind} starts when a person sets it to false",
        "label it kueue.x-k8s.io/queue-name, or remove suspend",
    )
