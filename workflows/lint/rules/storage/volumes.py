"""The volumes of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.training import trains
from argosy.workflows.manifests.workload import Workload

_SYSTEM: Final = (
    *("/dev", "/sys", "/proc", "/lib", "/lib64", "/bin", "/sbin", "/usr", "/etc", "/opt", "/run", "/var", "/boot"),
    "/home/kubernetes",
)
# By their names: disks that are meant to be the node's own, and file systems that every node mounts.
_MEANT: Final = re.compile(
    r"^/mnt/|local|nvme|ssd|scratch|cache|ephemeral|disk|raid|tmp|stateful_partition"
    r"|mount|s3|gcs|fuse|nfs|lustre|fsx|gpfs|weka|ceph|shared|efs"
)


def _trains(pod: Pod, workload: Workload | None, bundle: Bundle) -> bool:
    """Whether its pods may be a gang; a Deployment's are one only where a command says that it trains."""
    if workload is None or workload.document.kind not in ("Deployment", "ReplicaSet", "DaemonSet"):
        return True
    return any(trains(each.words, each.program) for container in pod.containers for each in bundle.processes(container))


def _mounted(pod: Pod) -> set[str]:
    """Names of the volumes that a container mounts."""
    return {
        mount["name"].text
        for container in pod.all_containers
        for mount in [*container.node["volumeMounts"], *container.node["volumeDevices"]]
    }


@rule("STORE009", Level.WARNING, on=Pod)
def host_directory(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A directory of the node: another one for each pod of a gang, and none of a restarted pod's new node."""
    workload = bundle.workload(pod.document)
    many = workload is not None and workload.family != "argo" and (workload.total is None or workload.total > 1)
    used, trains_here = _mounted(pod), _trains(pod, workload, bundle)
    for name, volume in pod.volumes.items():
        path = volume.at("hostPath.path")
        if name not in used:  # STORE007 says so
            continue
        if not path or path.open or any(path.text == each or path.text.startswith(f"{each}/") for each in _SYSTEM):
            continue
        why = "each node has its own" if many else "a restarted pod may come to another node"
        yield Problem(
            path,
            f"{path.text} is a directory of the node: {why}",
            "mount a claim that all nodes reach (ReadWriteMany), or read from and write to an object store",
            level=Level.WARNING if many and trains_here and not _MEANT.search(path.text.lower()) else Level.NOTE,
        )
