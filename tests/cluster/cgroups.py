"""The cgroup trees of an instance's nodes: ``/argosy1/node-a`` in every hierarchy of version 1, or in version 2's."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.cluster.instance import Instance


def root(instance: Instance, node: str) -> str:
    """What the kubelet is told."""
    return f"/{instance.name}/{node}"


def _hierarchies() -> dict[Path, bool]:
    """Where cgroups are mounted; True for a hierarchy of version 2 that has controllers."""
    found = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, kind, *_ = line.split()
        unified = kind == "cgroup2" and bool((Path(target) / "cgroup.controllers").read_text().split())
        if kind == "cgroup" or unified:
            found[Path(target)] = unified
    return found


def create(instance: Instance, node: str) -> None:
    """Make the node's tree; processors and memory nodes are handed down, else nothing could run in it."""
    for hierarchy, unified in _hierarchies().items():
        above = hierarchy
        for part in (instance.name, node):
            below = above / part
            below.mkdir(exist_ok=True)
            if unified:
                controllers = (above / "cgroup.controllers").read_text().split()
                (above / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not unified and (above / name).exists():
                    (below / name).write_text((above / name).read_text())
            above = below


def remove(instance: Instance) -> None:
    """Take the trees of all its nodes away; their processes have ended."""
    for hierarchy in _hierarchies():
        top = hierarchy / instance.name
        for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):  # a process that is still being buried; the next start takes it
                folder.rmdir()
        with contextlib.suppress(OSError):
            top.rmdir()
