"""NCCL006-NCCL012: names of plugins, misspelt and unknown names, names that this version does not read."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.catalogue import names_read, variables
from argosy.steps.nccl.facts import version
from argosy.steps.nccl.finding import EnvironmentFinding, Level, Remove, Rename
from argosy.steps.nccl.gone import DEPRECATED, FAST_PATHS, MISNAMED, REMOVED, TORCH_ALIASES
from argosy.steps.nccl.readers import GOOGLE, SPECTRUM, known_elsewhere
from argosy.steps.nccl.scene import Scene
from argosy.steps.nccl.spelling import nearest

_TABLE = {"NCCL_TIMEOUT", *REMOVED, *MISNAMED, *DEPRECATED, *TORCH_ALIASES}


def google(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Settings of TCPX, TCPXO and gIB away from Google's machines."""
    if scene.in_cloud("gcp"):
        return
    net = scene.text("NCCL_NET").lower()
    if net in ("gib", "fastrak") or "gib" in scene.text("LD_LIBRARY_PATH") or "tcpx" in scene.text("LD_LIBRARY_PATH"):
        return
    elsewhere = scene.cloud is not None or scene.link in ("efa", "ib")
    level: Level = "error" if elsewhere else "warning"
    for name in sorted(scene.env):
        if name.startswith(GOOGLE):
            message = f"{name} is read by Google's network plugins only, and nothing here loads one"
            remedy = "remove it, or take Google's whole set: its annotations, mounts and plugin"
            yield EnvironmentFinding("NCCL006", level, (name,), message, remedy, Remove(name) if elsewhere else None)


def spectrum(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Settings of the Spectrum-X plugin without it."""
    if "spc" in scene.text("NCCL_NET_PLUGIN").lower():
        return
    for name in sorted(scene.env):
        if name.startswith(SPECTRUM):
            message = f"{name} is read by the Spectrum-X network plugin only; NCCL itself ignores it"
            remedy = "remove it, or load that plugin by NCCL_NET_PLUGIN"
            yield EnvironmentFinding("NCCL007", "warning", (name,), message, remedy)


def strangers(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Misspelt names, then names that nothing known reads."""
    known = names_read()
    if any(name.startswith("amd.com/") for name in scene.facts.resources or ()):
        return  # RCCL reads names of its own beside NCCL's
    for name in sorted(scene.env):
        upper = name.upper()
        if not upper.startswith("NCCL") or name in known or name in _TABLE or known_elsewhere(name):
            continue
        right = nearest(name, known)
        if right:
            message = f"NCCL does not read {name}: did you mean {right}?"
            fix = None if scene.has(right) or right in FAST_PATHS else Rename(name, right)
            yield EnvironmentFinding("NCCL008", "warning", (name,), message, f"write {right}", fix)
        elif upper.startswith("NCCL_"):
            message = f"no NCCL from 2.17 to 2.32 reads {name}, nor a plugin that argosy knows"
            remedy = "remove it, unless your own program or plugin reads it; NCCL ignores unknown names silently"
            yield EnvironmentFinding("NCCL009", "warning", (name,), message, remedy)


def other_version(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Known names that the NCCL of this pod does not read."""
    nccl = scene.facts.nccl
    for name in sorted(scene.env.keys() & variables().keys()):
        variable = variables()[name]
        if name in REMOVED or (name == "NCCL_DEBUG_LEVELS"):
            continue
        first = ".".join(map(str, variable.first[:2]))
        last = ".".join(map(str, variable.last[:2]))
        if variable.first and nccl.older_than(first):
            message = f"{name} first appears in NCCL {first}; the one in this pod is older and ignores it"
            yield EnvironmentFinding("NCCL010", "warning", (name,), message, f"remove it or move to NCCL {first}")
        elif variable.last and nccl.low is not None and nccl.low[:2] > version(last):
            message = f"{name} was last read by NCCL {last}; the one in this pod is newer and ignores it"
            yield EnvironmentFinding("NCCL010", "warning", (name,), message, "remove it", Remove(name))


_LEFTOVERS: dict[str, tuple[Level, str]] = {
    "FI_EFA_FORK_SAFE": ("note", "libfabric 1.18 and newer need it no more"),
    "RDMAV_FORK_SAFE": ("warning", "AWS says not to set it with EFA"),
    "FI_EFA_USE_DEVICE_RDMA": ("note", "the plugin asks for RDMA itself since libfabric 1.18 and aws-ofi-nccl 1.7"),
    "FI_PROVIDER": ("note", "aws-ofi-nccl 1.7 and newer choose the efa provider themselves"),
}


def efa_leftovers(scene: Scene) -> Iterator[EnvironmentFinding]:
    """EFA settings of old recipes."""
    for name, (level, why) in _LEFTOVERS.items():
        value = scene.text(name).strip().lower()
        if not scene.has(name) or (name == "FI_PROVIDER" and value not in ("efa", "")):
            continue
        if name == "RDMAV_FORK_SAFE" and scene.link in ("ib", "roce"):
            continue  # there it is libibverbs' own switch for programs that fork
        if name == "FI_EFA_USE_DEVICE_RDMA" and value == "0":
            message = "FI_EFA_USE_DEVICE_RDMA=0 turns GPUDirect RDMA over EFA off"
            yield EnvironmentFinding("NCCL011", "warning", (name,), message, "remove it", Remove(name))
            continue
        yield EnvironmentFinding("NCCL011", level, (name,), f"{name} is a leftover: {why}", "remove it", Remove(name))


def efa_missing(scene: Scene) -> Iterator[EnvironmentFinding]:
    """EFA settings in a pod that gets no EFA device, or another provider in one that does."""
    names = tuple(sorted(name for name in scene.env if name.startswith(("FI_EFA_", "OFI_NCCL_"))))
    provider = scene.text("FI_PROVIDER").strip().lower()
    if provider == "efa":
        names = (*names, "FI_PROVIDER")
    if scene.link == "efa":
        if provider and "efa" not in provider:
            message = f"FI_PROVIDER={provider} keeps NCCL away from the EFA devices that the pod requests"
            fix = Remove("FI_PROVIDER")
            yield EnvironmentFinding("NCCL012", "warning", ("FI_PROVIDER",), message, "remove it", fix)
    elif names and scene.facts.resources is not None and not scene.facts.host_network and not scene.facts.privileged:
        message = f"{names[0]} is for EFA, but the container requests no vpc.amazonaws.com/efa: traffic goes over TCP"
        remedy = "request vpc.amazonaws.com/efa in limits, or remove the EFA settings"
        yield EnvironmentFinding("NCCL012", "warning", names, message, remedy)


CHECKS = (google, spectrum, strangers, other_version, efa_leftovers, efa_missing)
