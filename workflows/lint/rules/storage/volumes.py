"""The volumes of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Pod

_SYSTEM: Final = (
    *("/dev", "/sys", "/proc", "/lib", "/lib64", "/bin", "/sbin", "/usr", "/etc", "/opt", "/run", "/var", "/boot"),
    "/home/kubernetes",
)


def _mounted(pod: Pod) -> set[str]:
    """Names of the volumes that a container mounts."""
    return {
        mount["name"].text
        for container in pod.all_containers
        for mount in [*container.node["volumeMounts"], *container.node["volumeDevices"]]
    }


@rule("STORE009", Level.NOTE, on=Pod)
def host_directory(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A directory of the node: another one for each pod of a gang, and none of a restarted pod's new node."""
    workload = bundle.workload(pod.document)
    many = workload is not None and workload.family != "argo" and (workload.total is None or workload.total > 1)
    used = _mounted(pod)
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
        )
