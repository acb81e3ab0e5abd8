"""Who decides when the pods of a workload may start, and whether it takes all of them or none."""

from __future__ import annotations

from typing import Final

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod_group import group_of
from argosy.workflows.manifests.workload import Workload

KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
KAI_QUEUES: Final = ("kai.scheduler/queue", "runai/queue")


def kueue_queue(workload: Workload) -> Node:
    """The label that hands the object to Kueue; missing without one."""
    return workload.document.labels[KUEUE_QUEUE]


def schedulers(workload: Workload) -> set[str]:
    """The schedulers that the pods of a workload name, ``""`` for the default one."""
    own = workload.spec["schedulerName"].text if workload.family == "volcano" else ""
    return {pod.spec["schedulerName"].text or own for pod in workload.pods}


def all_or_nothing(workload: Workload) -> bool:
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
