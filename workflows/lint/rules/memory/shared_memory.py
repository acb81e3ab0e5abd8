"""``/dev/shm``: where NCCL and DataLoader workers hand each other data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.arguments import arguments
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launchers import LAUNCHERS
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.quantity import quantity
from argosy.workflows.manifests.ranks import IDLE
from argosy.workflows.manifests.training import named_training

_DEV_SHM: Final = "/dev/shm"
_TALKS: Final = re.compile(r"distributed|DataLoader|parallel|accelerat|spawn|nccl|jax|tensorflow", re.IGNORECASE)
_WORKERS: Final = ("num-workers", "workers", "dataloader-num-workers", "num-data-workers", "data-workers")


@rule("MEM001", Level.WARNING, on=Container)
def missing(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Without a volume at /dev/shm a container has the runtime's default of 64 MiB."""
    pod = container.pod
    sketch = pod.document.kind == "Pod" and not container.image  # a page's, of something else
    if (
        container.init
        or sketch
        or pod.spec["hostIPC"].flag
        or pod.shared_memory(container)
        or _made_elsewhere(container, bundle)
    ):
        return
    why = _needs_it(container, bundle)
    if why:
        yield Problem(
            container.node["volumeMounts"],
            f"{why} and no volume at /dev/shm: the container gets 64 MiB",
            "mount an emptyDir with medium: Memory and a sizeLimit at /dev/shm",
            level=None if _several_processes(container, bundle) else Level.NOTE,
        )


def _several_processes(container: Container, bundle: Bundle) -> bool:
    """Whether processes of the container hand each other data, as far as commands and names say."""
    document, gpus, commands = container.pod.document, container.gpus or 0, bundle.processes(container)
    if gpus > 1 and (document.spec["slotsPerWorker"].number or 1) > 1:
        return True
    launched = any(each.program in LAUNCHERS and each.option("nproc-per-node") != "1" for each in commands)
    # Of a PyTorchJob's python one process runs in a pod, as REND055 says; two fit into 64 MiB.
    by_itself = gpus > 2 and document.kind not in ("PyTorchJob", "TFJob")
    by_itself = by_itself and any(each.program == "python" and named_training(each.words) for each in commands)
    return bool(_data_workers(container, bundle)) or (launched and gpus > 1) or by_itself


def _needs_it(container: Container, bundle: Bundle) -> str:
    workers = _data_workers(container, bundle)
    if workers:
        return f"{workers} DataLoader workers"
    processes = bundle.processes(container)
    if processes and all(_tries(process.words) for process in processes):
        return ""
    programs = [process.program for process in processes]
    trains = not programs or bool(set(programs) & {*LAUNCHERS, "python"})
    if container.gpus == 0 or (not trains and ((container.gpus or 0) < 2 or set(programs) <= IDLE)):
        return ""
    role = container.pod.role
    if role is not None and role.launcher:
        return ""
    return "GPUs" if container.gpus is None else f"{container.gpus} GPU{'s' * (container.gpus > 1)}"


def _tries(words: Sequence[str]) -> bool:
    """Whether it is a piece of Python in the command line that starts no second process: it looks at its GPUs."""
    code = next((after for word, after in pairwise(words) if word == "-c"), "")
    return bool(code) and words[0].startswith("python") and not _TALKS.search(code)


def _data_workers(container: Container, bundle: Bundle) -> int:
    for process in bundle.processes(container):
        for name, value in arguments(process):
            if name == "workers" and not named_training(process.words):
                continue  # of a program that loads, labels or serves
            if name in _WORKERS and value.isdecimal():
                return int(value)
    return 0


def _made_elsewhere(container: Container, bundle: Bundle) -> bool:
    """KubeRay mounts a tmpfs at /dev/shm itself; a TrainJob's volumes stand in its runtime."""
    document = container.pod.document
    if document.kind == "TrainJob":
        return not _runtime_lacks_it(document.spec, container, bundle)
    return document.group == "ray.io"


def _runtime_lacks_it(spec: Node, container: Container, bundle: Bundle) -> bool:
    if spec["podTemplateOverrides"] or spec["runtimePatches"]:
        return False
    name = spec.at("runtimeRef.name").text
    found = [bundle.find(kind, name, container.pod.document) for kind in ("TrainingRuntime", "ClusterTrainingRuntime")]
    runtimes = [bundle.workload(each) for each in found if each is not None]
    pods = [role.pod for each in runtimes if each is not None for role in each.roles if role.name == container.name]
    return bool(pods) and all(pod.main is not None and pod.shared_memory(pod.main) is None for pod in pods)


def _memory_volumes(container: Container) -> Iterator[tuple[str, Node]]:
    """(mount path, emptyDir) of the container's volumes in memory."""
    for path, mount in container.mounts.items():
        volume = container.pod.volumes.get(mount["name"].text)
        if volume is not None and volume.at("emptyDir.medium").text == "Memory":
            yield path, volume["emptyDir"]


@rule("MEM002", Level.NOTE, on=Container)
def unbounded(container: Container) -> Iterator[Problem]:
    """A tmpfs without sizeLimit grows to the pod's memory limit, and without that to the node's memory."""
    for path, volume in _memory_volumes(container):
        if volume["sizeLimit"]:
            continue
        limited = container.limits["memory"]
        until = f"the memory limit, {limited.text}," if limited else "all memory of the node"
        yield Problem(
            volume["medium"],
            f"a volume in memory at {path} without sizeLimit may take {until} and its pages count as the pod's memory",
            "set sizeLimit to what the ranks share: 1Gi is enough for NCCL, DataLoader workers want more",
        )


@rule("MEM003", Level.NOTE, on=Container)
def eats_the_limit(container: Container) -> Iterator[Problem]:
    """Pages of a tmpfs are charged to the container's memory limit."""
    limit = container.limit("memory")
    for path, volume in _memory_volumes(container):
        size = quantity(volume["sizeLimit"].text)
        if not limit or size is None or size <= limit / 2:
            continue
        yield Problem(
            volume["sizeLimit"],
            f"{path} may grow to {volume['sizeLimit'].text}, which is charged to the container's memory limit of "
            f"{container.limits['memory'].text}"
            + (": full, it leaves nothing for the process" if size >= limit else ""),
            "raise the memory limit by the size of the volume, or lower sizeLimit",
        )


@rule("MEM004", Level.WARNING, on=Container)
def on_disk(container: Container) -> Iterator[Problem]:
    """An emptyDir without ``medium: Memory`` is a directory on the node's disk."""
    mount = container.mounts.get(_DEV_SHM)
    volume = container.pod.volumes.get(mount["name"].text) if mount is not None else None
    if volume is not None and volume["emptyDir"].exists and not volume.at("emptyDir.medium"):
        yield Problem(
            volume["emptyDir"],
            "/dev/shm is an emptyDir without medium: Memory, a directory on the node's disk",
            "write emptyDir: {medium: Memory, sizeLimit: …}, and count the size in the memory limit",
        )
