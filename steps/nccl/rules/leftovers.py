"""NCCL018, NCCL019, NCCL045: what a diagnosis left behind, and the drawers that are not for production."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.catalogue import variables
from argosy.steps.nccl.finding import EnvironmentFinding, Level
from argosy.steps.nccl.scene import Scene

_TRANSPORTS_OFF = {
    "NCCL_P2P_DISABLE": ("1", "GPUs of a node then talk through host memory"),
    "NCCL_P2P_DIRECT_DISABLE": ("1", "user buffers are then copied before they are sent"),
    "NCCL_SHM_DISABLE": ("1", "GPUs without P2P then talk over the network, even within a node"),
    "NCCL_P2P_LEVEL": ("LOC", "GPUs of a node then talk through host memory"),
    "NCCL_NET_GDR_LEVEL": ("LOC", "network traffic is then copied through host memory"),
    "NCCL_NET_GDR_READ": ("0", "data that is sent is then copied through host memory"),
    "NCCL_DMABUF_ENABLE": ("0", "without nvidia_peermem there is then no GPUDirect RDMA"),
    "NCCL_PXN_DISABLE": ("1", "traffic to other rails then crosses the CPU or the spine"),
}
_NO_P2P = ("4090", "3090", "5090", "RTX")

_RAS = frozenset({"NCCL_RAS_ENABLE", "NCCL_RAS_ADDR", "NCCL_RAS_TIMEOUT_FACTOR"})


def transports_off(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Fast paths that were turned off to find a fault."""
    for name, (bad, effect) in _TRANSPORTS_OFF.items():
        value = scene.text(name).strip()
        if not (value == bad or (bad == "LOC" and value == "0")) or name in scene.demanded():
            continue
        consumer = "P2P" in name and any(mark in (scene.facts.gpu or "").upper() for mark in _NO_P2P)
        level: Level = "note" if scene.facts.diagnosis or consumer else "warning"
        message = f"{name}={value} is for finding a fault: {effect}"
        remedy = "remove it, and mend what it hides (ACS, IOMMU, /dev/shm, peermem)"
        yield EnvironmentFinding("NCCL045", level, (name,), message, remedy)


def debugging_drawer(scene: Scene, covered: frozenset[str]) -> Iterator[EnvironmentFinding]:
    """Variables of the guide's Debugging section; ``covered`` have a finding of their own."""
    for name in sorted(scene.env.keys() & variables().keys() - covered - scene.demanded() - _RAS):
        if variables()[name].drawer != "debugging" or scene.is_default(name):
            continue
        level: Level = "note" if scene.facts.diagnosis or scene.env[name] is None else "warning"
        message = f"NVIDIA files {name} under Debugging: not for production, it may cost speed or hang"
        remedy = "remove it once the problem that it works around is solved"
        yield EnvironmentFinding("NCCL018", level, (name,), message, remedy)


def undocumented(scene: Scene, covered: frozenset[str]) -> Iterator[EnvironmentFinding]:
    """Variables that no guide names."""
    kept = frozenset(
        {"NCCL_WARN_ENABLE_DEBUG_INFO", "NCCL_PAT_ENABLE", "NCCL_HOSTID", "NCCL_COMM_ID", "NCCL_CUDA_PATH"}
    )
    drawer = "undocumented"
    for name in sorted(scene.env.keys() & variables().keys() - covered - scene.demanded() - kept):
        if variables()[name].drawer == drawer and not name.startswith(("NCCL_RUN_", "NCCL_PROGRESS_")):
            message = f"{name} is not in NVIDIA's guide: it may change or vanish with any release"
            yield EnvironmentFinding(
                "NCCL019", "note", (name,), message, "remove it unless NVIDIA or a cloud told you to"
            )


CHECKS = (transports_off,)
LAST = (debugging_drawer, undocumented)
