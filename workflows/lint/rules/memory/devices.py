"""GPUs: who asks for them, and who sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launchers import LAUNCHERS
from argosy.workflows.manifests.pod import Container, Pod
from argosy.workflows.manifests.training import named_training
from argosy.workflows.manifests.workload import Workload

_HIDDEN: Final = ("", "void", "none")
_ALL: Final = 8
"""GPUs of a whole node, whose others' pods get none."""


@rule("MEM015", Level.WARNING, on=Container)
def all_devices(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """NVIDIA_VISIBLE_DEVICES is the device plugin's: set by hand it shows GPUs that belong to other pods."""
    variable = bundle.environment(container).get("NVIDIA_VISIBLE_DEVICES")
    if variable is None or variable.value is None or variable.value in _HIDDEN:
        return
    which = "all GPUs of the node" if variable.value == "all" else f"the GPUs {variable.value} of the node"
    yield Problem(
        variable.place,
        f"NVIDIA_VISIBLE_DEVICES={variable.value} shows the container {which}, whoever they are given to",
        "remove it and ask for GPUs in resources.limits: the device plugin sets the variable",
        level=Level.NOTE if (container.gpus or 0) >= _ALL else None,
    )


@rule("MEM016", Level.WARNING, on=Container)
def cuda_devices(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """CUDA_VISIBLE_DEVICES by hand against the number of GPUs that the container gets."""
    variable = bundle.environment(container).get("CUDA_VISIBLE_DEVICES")
    if variable is None or variable.value is None or not container.gpus:
        return
    shown = [each.strip() for each in variable.value.split(",")] if variable.value not in ("", "-1") else []
    if not all(each.isdecimal() for each in shown):
        return
    if len(shown) != container.gpus or max(map(int, shown)) >= container.gpus:
        yield Problem(
            variable.place,
            f"CUDA_VISIBLE_DEVICES={variable.value} with {container.gpus} GPUs: CUDA counts the container's own GPUs "
            f"from 0, so this shows {_usable(shown, container.gpus)} of them",
            "remove it: a container sees just the GPUs that it is given",
        )


_OF_CUDA: Final = re.compile(
    r"(?:^|[\s=])(?:nccl|cuda)(?:$|[\s:])|--nproc[-_]per[-_]node[= ]gpu\b|--(?:num[-_])?gpus?[= ][1-9]|NCCL_\w+="
)
_DEVICES: Final = re.compile(r"^/dev(?!/shm)|nvidia|cuda")
_OF_GPU_NODES: Final = re.compile(r"accelerator|nvidia\.com/|gpu")


@rule("MEM017", Level.WARNING, on=Workload)
def no_devices(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A training on CUDA, or on nodes with GPUs, whose pod asks for none."""
    if workload.family in ("ray", "trainer") or workload.spec["podSpecPatch"]:
        return
    for each in bundle.launches(workload):
        pod, named = each.role.pod, named_training(each.process.words) or each.program in LAUNCHERS
        said = " ".join([*each.process.words, *(f"{name}=" for name in each.environment)])
        image = each.torch and each.option("nproc-per-node") is not None and "cuda" in each.container.image.text
        cuda = image or _OF_CUDA.search(said) is not None
        if each.role.launcher or not named or _gets_devices(pod, bundle) or not (cuda or _on_gpu_nodes(pod)):
            continue
        what = "runs on CUDA" if cuda else "is placed on nodes with GPUs"
        yield Problem(
            each.container.node["resources"],
            f"the training {what} and asks for no GPU: it sees none, or, where NVIDIA's runtime is the node's default, "
            "those of other pods",
            "write resources: {limits: {nvidia.com/gpu: N}}",
        )


def _gets_devices(pod: Pod, bundle: Bundle) -> bool:
    """Whether an extended resource brings devices, or something else may."""
    names = [name for each in pod.containers for held in (each.requests, each.limits) for name in held.entries]
    if pod.spec["runtimeClassName"] or pod.spec["resourceClaims"] or any("/" in name for name in names):
        return True
    if any(_DEVICES.search(each.at("hostPath.path").text) for each in pod.volumes.values()):
        return True
    for each in pod.containers:
        filled_in = any(node.open for node in each.node["resources"].walk())
        if filled_in or each.privileged or "NVIDIA_VISIBLE_DEVICES" in bundle.environment(each):
            return True
    return False


def _on_gpu_nodes(pod: Pod) -> bool:
    return any(_OF_GPU_NODES.search(key) is not None for key in pod.spec["nodeSelector"].entries)


def _usable(shown: list[str], gpus: int) -> int:
    """CUDA takes the numbers up to the first that is none of its devices."""
    bad = next((index for index, each in enumerate(shown) if int(each) >= gpus), len(shown))
    return len(set(shown[:bad]))
