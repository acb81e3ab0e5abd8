"""Kueue: queues, groups of plain pods, what it does not know, and who ends a suspension."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.queue import KUEUE_QUEUE, kueue_queue
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


@rule("GANG018", Level.NOTE, on=Workload)
def not_known(workload: Workload) -> Iterator[Problem]:
    """Kinds that Kueue does not queue, or not any more unless it is told to."""
    queue = kueue_queue(workload)
    if not queue:
        return
    if workload.family == "argo":
        yield Problem(
            queue,
            f"Kueue does not queue a {workload.document.kind}: the label is read by nothing",
            "label the object that the workflow creates, or podMetadata for its pods one by one",
        )
    elif workload.document.api_version == "kubeflow.org/v1":
        yield Problem(
            queue,
            f"Kueue's integration of {workload.document.kind} is off by default in its current releases: where nobody "
            "switched it on, the job starts without waiting",
            "see that integrations.frameworks names kubeflow.org/" + workload.document.kind.lower() + ", or use a "
            "JobSet",
            level=Level.NOTE,
        )
