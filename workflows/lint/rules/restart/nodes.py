"""What becomes of pods on a node that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.workload import Workload

_LOST: Final = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def _tolerates_loss(toleration: Node) -> bool:
    if toleration["effect"].text not in ("", "NoExecute"):
        return False
    key = toleration["key"].text
    return key in _LOST or (not key and toleration["operator"].text == "Exists")


@rule("RESTART034", Level.NOTE, on=Workload)
def for_ever(workload: Workload) -> Iterator[Problem]:
    """A pod that tolerates a lost node for ever is never replaced."""
    if workload.family == "other":  # a server's or an agent's pod
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
