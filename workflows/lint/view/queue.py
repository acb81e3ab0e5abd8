"""Who decides when the pods of a workload may start, and whether it takes all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.workload import Workload

if TYPE_CHECKING:
    from argosy.workflows.lint.bundle import Bundle

KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
VOLCANO_GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
COSCHEDULING_GROUPS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
)
KAI_QUEUES: Final = ("kai.scheduler/queue", "runai/queue")


def kueue_queue(workload: Workload) -> Node:
    """The label that hands the object to Kueue; missing without one."""
    return workload.document.labels[KUEUE_QUEUE]


def schedulers(workload: Workload) -> set[str]:
    """The schedulers that the pods of a workload name, ``""`` for the default one."""
    own = workload.spec["schedulerName"].text if workload.family == "volcano" else ""
    return {pod.spec["schedulerName"].text or own for pod in workload.pods}


def group_of(pod: Pod) -> tuple[str, Node] | None:
    """(``native``, ``volcano`` or ``coscheduling``; the name) of the group that a pod says it belongs to."""
    native = pod.spec.at("schedulingGroup.podGroupName")
    if native:
        return "native", native
    for key in VOLCANO_GROUPS:
        if pod.annotations[key]:
            return "volcano", pod.annotations[key]
    for key in COSCHEDULING_GROUPS:
        if pod.labels[key]:
            return "coscheduling", pod.labels[key]
    return None


def queued_by(workload: Workload, bundle: Bundle) -> str:
    """The queue in which an object may wait before it has pods; ``""`` when there is none."""
    del bundle
    if kueue_queue(workload):
        return "Kueue's queue"
    if workload.family == "volcano" or "volcano" in schedulers(workload):
        return "Volcano's queue"
    return "suspension" if workload.spec["suspend"].flag is True else ""


def all_or_nothing(workload: Workload, bundle: Bundle) -> bool:
    """Whether something starts all pods of a workload or none, as far as the files say."""
    spec, document = workload.spec, workload.document
    if workload.family == "volcano" or kueue_queue(workload) or document.labels[KUEUE_QUEUE].exists:
        return True
    if any(document.labels[key] for key in KAI_QUEUES) or document.labels["ray.io/gang-scheduling-enabled"]:
        return True
    if spec.at("runPolicy.schedulingPolicy") or spec["podGroupPolicy"] or spec["scheduling"]:
        return True
    if any(pod.labels[KUEUE_QUEUE] or any(pod.labels[key] for key in KAI_QUEUES) for pod in workload.pods):
        return True
    if any(role.job["scheduling"] for role in workload.roles) or any(group_of(pod) for pod in workload.pods):
        return True
    return bool(schedulers(workload) - {"", "default-scheduler"})
