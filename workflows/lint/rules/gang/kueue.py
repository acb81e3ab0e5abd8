"""Kueue: queues, groups of plain pods, what it does not know, and who ends a suspension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.queue import KUEUE_QUEUE, kueue_queue
from argosy.workflows.lint.view.ranks import together
from argosy.workflows.lint.view.workload import Workload

_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
_PARTIAL: Final = "kueue.x-k8s.io/job-min-parallelism"


@rule("GANG014", Level.NOTE, on=Workload)
def local_queue(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The queue that a workload names."""
    queue = kueue_queue(workload)
    if not queue.text or queue.open or workload.family == "argo":
        return
    if bundle.find("LocalQueue", queue.text, workload.document) is not None:
        return
    elsewhere = next(iter(bundle.named("LocalQueue", queue.text)), None)
    if elsewhere is not None:
        yield Problem(
            queue,
            f"the LocalQueue {queue.text!r} is in the namespace {elsewhere.namespace}, and a workload sees those of "
            "its own only: it stays suspended",
            f"write namespace: {elsewhere.namespace}, or a LocalQueue in the workload's namespace",
            level=Level.WARNING,
        )
    elif bundle.find("ClusterQueue", queue.text, workload.document) is not None:
        message = f"{queue.text!r} is a ClusterQueue among the files given, and the label names a LocalQueue"
        yield Problem(queue, message, "name a LocalQueue of the namespace", level=Level.WARNING)
    else:
        message = f"the LocalQueue {queue.text!r} is not among the files given: without it the workload stays suspended"
        yield Problem(queue, message, "see that the namespace has it: kubectl get localqueue")


@rule("GANG015", Level.ERROR, on=Workload)
def pod_groups(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A group of plain pods says how many they are."""
    del bundle
    for pod in workload.pods:
        group, count = pod.labels[_GROUP] or pod.annotations[_GROUP], pod.annotations[_COUNT]
        if group and not count:
            yield Problem(
                group,
                f"the pods belong to Kueue's group {group.text!r} without {_COUNT}: Kueue refuses them",
                f'annotate them {_COUNT}: "the number of the group\'s pods"',
            )
        elif count and not group:
            message = f"{_COUNT} without {_GROUP}: each pod is admitted alone"
            yield Problem(count, message, f"label the pods {_GROUP}", level=Level.WARNING)
        if group and not pod.labels[KUEUE_QUEUE] and not workload.document.labels[KUEUE_QUEUE]:
            message = f"a pod of Kueue's group {group.text!r} without the label {KUEUE_QUEUE}: Kueue does not see it"
            yield Problem(group, message, f"label the pods {KUEUE_QUEUE}", level=Level.WARNING)


@rule("GANG016", Level.WARNING, on=Workload)
def partial(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Partial admission starts fewer pods than a fixed gang has."""
    node = workload.document.annotations[_PARTIAL]
    if node and together(workload, bundle) and (node.number is None or node.number < (workload.total or 0)):
        yield Problem(
            node,
            f"{_PARTIAL}: {node.text} lets Kueue start fewer pods than the training has nodes: they wait for the "
            "others until the rendezvous times out",
            "remove it, or let torchrun take a range (--nnodes=MIN:MAX with c10d)",
        )


@rule("GANG017", Level.WARNING, on=Workload)
def nobody_resumes(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A suspended object without a queue waits for a person."""
    del bundle
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


@rule("GANG018", Level.WARNING, on=Workload)
def not_known(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Kinds that Kueue does not queue, or not any more unless it is told to."""
    del bundle
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
