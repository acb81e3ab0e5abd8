"""What this pod can see of itself, for the checks of its environment: asked, never guessed."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.launch.arithmetic import visible_gpus

if TYPE_CHECKING:
    from argosy.steps.nccl.facts import Facts, Link

_SYS = Path("/sys/class")
_NCCL_WHEELS = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")


def pod_facts(nnodes: int, fabric: str) -> Facts:
    """Facts of the pod of one node of a gang; ``fabric`` is the profile's name, empty: none is declared."""
    from argosy.steps.nccl.facts import Facts, Span

    nccl, torch = _version(*_NCCL_WHEELS), _version("torch")
    return Facts(
        nccl=Span.exactly(nccl) if nccl else Span(),
        torch=Span.exactly(torch) if torch else Span(),
        gpus_per_pod=visible_gpus() or None,
        nodes=nnodes,
        non_root=os.getuid() != 0,
        interfaces=frozenset(_names(_SYS / "net")) or None,
        link=link_of(_SYS / "infiniband"),
        fabric=fabric or None,
    )


def link_of(devices: Path) -> Link:
    """What the RDMA devices of the pod speak; ``unknown`` without any, for another plugin may bring its own."""
    for name in sorted(_names(devices)):
        driver = devices / name / "device" / "driver"
        if driver.is_symlink() and driver.resolve().name == "efa":
            return "efa"
        for port in sorted(_names(devices / name / "ports")):
            try:
                layer = (devices / name / "ports" / port / "link_layer").read_text().strip()
            except OSError:
                continue
            if layer in ("InfiniBand", "Ethernet"):
                return "ib" if layer == "InfiniBand" else "roce"
    return "unknown"


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _version(*names: str) -> str:
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""
