"""GPUs: who asks for them, and who sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import GPU_RESOURCES, Container
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.workload import Workload

_HIDDEN: Final = ("", "void", "none")


@rule("MEM014", Level.WARNING, on=Pod)
def init_container(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A pod holds the larger of what its init containers and its containers ask for, for as long as it lives."""
    del bundle
    if pod.gpus is None:
        return
    for container in pod.init_containers:
        if container.gpus and container.gpus > pod.gpus and not container.sidecar:
            name = next(name for name in container.limits.entries | container.requests.entries if _is_gpu(name))
            yield Problem(
                container.limits[name] or container.requests[name],
                f"the init container {container.name!r} asks for {container.gpus} GPUs and the others for "
                f"{pod.gpus}: the pod keeps {container.gpus} until it ends",
                "ask for the GPUs in the container that trains",
            )


def _is_gpu(resource: str) -> bool:
    return resource.startswith(GPU_RESOURCES)


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
    )


@rule("MEM016", Level.WARNING, on=Container)
def cuda_devices(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """CUDA_VISIBLE_DEVICES by hand against the number of GPUs that the container gets."""
    variable = bundle.environment(container).get("CUDA_VISIBLE_DEVICES")
    if variable is None or not variable.value or not container.gpus:
        return
    shown = [each.strip() for each in variable.value.split(",")]
    if not all(each.isdecimal() for each in shown):
        return
    if len(shown) != container.gpus or max(int(each) for each in shown) >= container.gpus:
        yield Problem(
            variable.place,
            f"CUDA_VISIBLE_DEVICES={variable.value} with {container.gpus} GPUs: CUDA counts the container's own GPUs "
            f"from 0, so this shows {_usable(shown, container.gpus)} of them",
            "remove it: a container sees just the GPUs that it is given",
        )


def _usable(shown: list[str], gpus: int) -> int:
    """CUDA takes the numbers up to the first that is none of its devices."""
    bad = next((index for index, each in enumerate(shown) if int(each) >= gpus), len(shown))
    return len(set(shown[:bad]))


@rule("MEM017", Level.NOTE, on=Container)
def few_processors(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Each GPU has a process that feeds it."""
    del bundle
    limit = container.limit("cpu")
    if container.gpus and not container.init and limit is not None and limit < container.gpus:
        yield Problem(
            container.limits["cpu"],
            f"a limit of {container.limits['cpu'].text} CPUs for {container.gpus} GPUs: each GPU has a process of its "
            "own, and they are throttled together",
            "give each GPU several CPUs: its rank, its DataLoader workers and NCCL's threads",
        )


@rule("MEM018", Level.NOTE, on=Workload)
def launcher_with_gpus(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """mpirun's own pod trains nothing."""
    del bundle
    for role in workload.roles:
        main = role.pod.main
        if role.launcher and main is not None and main.gpus:
            name = next(name for name in {**main.requests.entries, **main.limits.entries} if _is_gpu(name))
            yield Problem(
                main.limits[name] or main.requests[name],
                f"the launcher holds {main.gpus} GPUs and starts the ranks in the workers: its own stand idle",
                "ask for GPUs in the workers only, or set runLauncherAsWorker",
            )
