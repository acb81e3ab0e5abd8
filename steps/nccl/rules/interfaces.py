"""NCCL024-NCCL027: which interfaces and adapters NCCL may take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding, Fix, Level, Remove, Set
from argosy.steps.nccl.scene import Scene

_IFNAME = "NCCL_SOCKET_IFNAME"


def _wanted(scene: Scene) -> list[str]:
    """Names or prefixes that are asked for; [] when none or when the list excludes."""
    value = scene.text(_IFNAME).strip()
    return [] if value.startswith("^") else [word for word in value.lstrip("=").split(",") if word]


def pod_name_on_host(scene: Scene) -> Iterator[EnvironmentFinding]:
    """eth0 is the pod network's name, and a host's network has others."""
    if not scene.facts.host_network or scene.in_cloud("oci", "gcp"):
        return
    wanted = _wanted(scene)
    if wanted and all(re.fullmatch(r"eth\d*|net\d+", word) for word in wanted):
        message = (
            f"NCCL_SOCKET_IFNAME={scene.text(_IFNAME)} is the name of a pod's network, but hostNetwork shows the "
            "node's (ens*, enp*, bond0): NCCL then dies with 'Bootstrap : no socket interface found'"
        )
        remedy = "remove it and let NCCL choose, or exclude: ^lo,docker; or drop hostNetwork"
        yield EnvironmentFinding("NCCL024", "warning", (_IFNAME,), message, remedy)


def loopback(scene: Scene) -> Iterator[EnvironmentFinding]:
    """The loopback reaches no other node."""
    wanted = _wanted(scene)
    if wanted and all(word in ("lo", "docker", "docker0") for word in wanted) and scene.facts.nodes != 1:
        level: Level = "error" if scene.many_nodes() else "warning"
        message = f"NCCL_SOCKET_IFNAME={scene.text(_IFNAME)} leads to no other pod"
        yield EnvironmentFinding("NCCL025", level, (_IFNAME,), message, "remove it", Remove(_IFNAME))
    elif "lo" in wanted and scene.facts.nodes != 1:
        message = f"NCCL_SOCKET_IFNAME={scene.text(_IFNAME)} offers the loopback, on which no other pod is"
        yield EnvironmentFinding("NCCL025", "warning", (_IFNAME,), message, "take lo out of the list")


def absent(scene: Scene) -> Iterator[EnvironmentFinding]:
    """An interface that the pod does not have."""
    several = ("cni.cncf.io/networks", "networking.gke.io", "multus")
    present = scene.facts.interfaces
    if present is None and scene.facts.host_network is False and not scene.rdma:
        plain = not any(mark in key for key in scene.facts.annotations for mark in several)
        present = frozenset({"eth0", "lo"}) if plain else None  # what a container runtime makes without Multus
    if present is None or scene.facts.host_network:
        return
    exact = scene.text(_IFNAME).strip().startswith("=")
    missing = [
        word
        for word in _wanted(scene)
        if word not in ("lo",) and not any(name == word or (not exact and name.startswith(word)) for name in present)
    ]
    if missing and len(missing) == len(_wanted(scene)):
        message = f"the pod has no interface {missing[0]}: it has {', '.join(sorted(present))}"
        remedy = "name one of these, or remove it: what is named and missing stops NCCL"
        yield EnvironmentFinding("NCCL026", "warning", (_IFNAME,), message, remedy)


def adapters(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Prefixes in NCCL_IB_HCA."""
    value = scene.text("NCCL_IB_HCA").strip()
    words = [word.split(":")[0] for word in value.lstrip("^=").split(",") if word]
    if not words or value.lstrip("^").startswith("="):
        return
    many = [word for word in words if re.fullmatch(r"[a-z]+\d*_[1-9]\d*", word)]
    trap = [word for word in many if word.endswith("_1")]
    # rdma0, roce3: mlx5 is the name of a driver.
    numbered = all(re.search(r"\d$", word) and ("_" in word or not word.startswith("mlx")) for word in words)
    sign = "^" if value.startswith("^") else ""
    fix: Fix | None = Set("NCCL_IB_HCA", f"{sign}={value.lstrip('^')}") if numbered else None
    if trap:
        message = f"NCCL_IB_HCA={value}: {trap[0]} is a prefix and matches {trap[0]}0 to {trap[0]}9 too"
        remedy = f"write {sign}={value.lstrip('^')}"
        yield EnvironmentFinding("NCCL027", "warning", ("NCCL_IB_HCA",), message, remedy, fix)
    elif not numbered and not sign:
        whole = bool(scene.facts.host_network or scene.facts.privileged) and scene.cloud is None
        message = f"NCCL_IB_HCA={value} matches every adapter of that name, storage and front-end ones included"
        remedy = "list the compute adapters exactly (=mlx5_0,mlx5_3), or remove it"
        level: Level = "warning" if whole else "note"
        yield EnvironmentFinding("NCCL027", level, ("NCCL_IB_HCA",), message, remedy)
    elif numbered:
        message = f"NCCL_IB_HCA={value} is a list of prefixes"
        names = ("NCCL_IB_HCA",)
        yield EnvironmentFinding("NCCL027", "note", names, message, f"write {sign}={value.lstrip('^')}", fix)


CHECKS = (pod_name_on_host, loopback, absent, adapters)
