"""Capabilities, and what filters system calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod

_AS_ROOT: Final = ("ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF", "SYS_BOOT")
_FOR_DEBUGGING: Final = ("SYS_PTRACE", "PERFMON", "SYSLOG", "NET_RAW")


@rule("SEC010", Level.WARNING, on=Container)
def powerful(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Capabilities with which one is root of the node, or sees into other processes."""
    del bundle
    for node in container.security.at("capabilities.add"):
        name = node.text.removeprefix("CAP_")
        if name in _AS_ROOT:
            yield Problem(
                node,
                f"the capability {name} is as good as root of the node",
                "drop it; RDMA needs IPC_LOCK, NUMA binding needs SYS_NICE",
            )
        elif name in _FOR_DEBUGGING:
            yield Problem(
                node,
                f"the capability {name} is for debugging",
                "keep it out of runs that nobody debugs",
                level=Level.NOTE,
            )


@rule("SEC011", Level.WARNING, on=Container)
def prefixed(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Kubernetes writes capabilities without ``CAP_``."""
    del bundle
    for kind in ("add", "drop"):
        for node in container.security.at(f"capabilities.{kind}"):
            if node.text.startswith("CAP_"):
                yield Problem(
                    node,
                    f"{node.text}: Kubernetes writes capabilities without CAP_, and containerd, which adds it, does "
                    f"not know CAP_{node.text}",
                    f"write {node.text.removeprefix('CAP_')}",
                )


@rule("SEC012", Level.WARNING, on=Pod)
def unconfined(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """Without a filter every system call of the kernel is open."""
    del bundle
    for context in [pod.security, *(each.security for each in pod.all_containers)]:
        for profile in (context["seccompProfile"], context["appArmorProfile"]):
            if profile["type"].text == "Unconfined":
                yield Problem(
                    profile["type"],
                    f"{profile.key}: Unconfined takes away what the runtime filters by default",
                    "write RuntimeDefault; CUDA, NCCL and RDMA run under it",
                )
