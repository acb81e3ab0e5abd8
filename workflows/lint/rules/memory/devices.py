"""GPUs: who asks for them, and who sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Container

_HIDDEN: Final = ("", "void", "none")


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


def _usable(shown: list[str], gpus: int) -> int:
    """CUDA takes the numbers up to the first that is none of its devices."""
    bad = next((index for index, each in enumerate(shown) if int(each) >= gpus), len(shown))
    return len(set(shown[:bad]))
