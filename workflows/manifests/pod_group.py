"""The group that a pod says it belongs to."""

from __future__ import annotations

from typing import Final

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod

VOLCANO_GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
COSCHEDULING_GROUPS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io",
)


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
