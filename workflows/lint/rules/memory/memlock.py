"""Locked memory: RDMA pins its buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod

_EFA: Final = "vpc.amazonaws.com/efa"


@rule("MEM019", Level.WARNING, on=Container)
def inert_capability(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A capability that is added is in the bounding set; a process of another user than root does not have it."""
    del bundle
    if container.non_root and not container.privileged and "IPC_LOCK" in container.capabilities:
        yield Problem(
            container.security.at("capabilities.add"),
            "IPC_LOCK for a container that is not root: the process does not get it, and its memlock limit stays",
            "raise the limit on the nodes (LimitMEMLOCK=infinity for containerd), or run this container as root",
        )


@rule("MEM020", Level.NOTE, on=Container)
def pinned(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """RDMA registers memory, which is locked; containerd's default lets a process lock 8 MiB."""
    del bundle
    names = [name for name in container.rdma_resources if name != _EFA]
    may = container.privileged or container.capabilities & {"IPC_LOCK", "ALL"} or container.non_root
    if names and not container.init and not may:
        yield Problem(
            container.rdma_resources[names[0]],
            f"{names[0]} without the capability IPC_LOCK: RDMA needs the nodes to allow locked memory without limit",
            "add capabilities: {add: [IPC_LOCK]}, unless containerd runs with LimitMEMLOCK=infinity",
        )


@rule("MEM021", Level.NOTE, on=Pod)
def adapters_without_gpus(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """Network adapters for ranks that have no GPUs."""
    del bundle
    if pod.rdma_resources and pod.gpus == 0 and not pod.spec["resourceClaims"]:
        name, node = next(iter(pod.rdma_resources.items()))
        yield Problem(
            node,
            f"{name} and no GPUs: nothing here uses GPUDirect, and the adapters are taken from those that do",
            f"ask for GPUs beside them, or drop {name}",
        )
