"""What becomes of pods on a node that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.workload import Workload

_LOST: Final = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def _tolerates_loss(toleration: Node) -> bool:
    if toleration["effect"].text not in ("", "NoExecute"):
        return False
    key = toleration["key"].text
    return key in _LOST or (not key and toleration["operator"].text == "Exists")


@rule("RESTART034", Level.WARNING, on=Workload)
def for_ever(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A pod that tolerates a lost node for ever is never replaced."""
    del bundle
    if workload.document.kind == "DaemonSet":
        return
    for role in workload.roles:
        for toleration in role.pod.spec["tolerations"]:
            if _tolerates_loss(toleration) and not toleration["tolerationSeconds"]:
                what = toleration["key"].text or "every taint"
                yield Problem(
                    toleration,
                    f"the pod tolerates {what} without an end: when its node is lost it stays there, Running on "
                    "paper, and nothing starts the gang again",
                    "name the taints of your GPU nodes (key, effect: NoSchedule), or write tolerationSeconds",
                )


@rule("RESTART035", Level.NOTE, on=Workload)
def five_minutes(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """By default a pod is evicted 300 s after its node was found lost."""
    del bundle
    if not workload.gang or not workload.gpus or workload.family in ("ray", "trainer", "argo"):
        return
    role = max(workload.roles, key=lambda each: each.pod.gpus or 0)
    if not any(_tolerates_loss(each) for each in role.pod.spec["tolerations"]):
        yield Problem(
            role.pod.spec["tolerations"],
            "no toleration of node.kubernetes.io/unreachable: when a node is lost, the gang waits 300 s and the time "
            "the node takes to be found lost before its pod is evicted",
            "tolerate node.kubernetes.io/unreachable and not-ready (NoExecute) with tolerationSeconds: 30",
        )
