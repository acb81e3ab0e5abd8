"""Requests that leave nothing of a node for what runs on every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node_labels import selected_labels
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.quantity import quantity

# (CPUs, GiB of memory) of machines with eight GPUs, from the clouds' lists.
_MACHINES: Final = {
    "p4d.24xlarge": (96, 1152),
    "p4de.24xlarge": (96, 1152),
    "p5.48xlarge": (192, 2048),
    "p5e.48xlarge": (192, 2048),
    "p5en.48xlarge": (192, 2048),
    "p6-b200.48xlarge": (192, 2048),
    "p3dn.24xlarge": (96, 768),
    "g5.48xlarge": (192, 768),
    "a2-highgpu-8g": (96, 680),
    "a2-ultragpu-8g": (96, 1360),
    "a3-highgpu-8g": (208, 1872),
    "a3-megagpu-8g": (208, 1872),
    "a3-ultragpu-8g": (224, 2952),
    "a4-highgpu-8g": (224, 3968),
    "Standard_ND96asr_v4": (96, 900),
    "Standard_ND96amsr_A100_v4": (96, 1900),
    "Standard_ND96isr_H100_v5": (96, 1900),
    "BM.GPU.H100.8": (112, 2048),
}
_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_GIB: Final = 2.0**30


@rule("MEM023", Level.WARNING, on=Pod)
def whole_node(pod: Pod) -> Iterator[Problem]:
    """CPUs or memory as many as the machine has: the kubelet keeps some, so the pod fits on no node."""
    labels = dict(selected_labels(pod))
    machine = next((labels[key] for key in _LABELS if labels.get(key) in _MACHINES), None)
    if machine is None:
        return
    for resource, most in zip(("cpu", "memory"), (_MACHINES[machine][0], _MACHINES[machine][1] * _GIB), strict=True):
        asked = [(each.requests[resource] or each.limits[resource]) for each in pod.containers]
        total = sum(quantity(node.text) or 0 for node in asked)
        if total >= most:
            node = max(asked, key=lambda each: quantity(each.text) or 0)
            yield Problem(
                node,
                f"the pod asks for as much {resource} as a {machine} has: the kubelet and the daemons of the node take "
                "some of it, so the pod stays Pending",
                f"ask for a few per cent less {resource}",
            )
