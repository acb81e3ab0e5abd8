"""The volumes of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.quantity import quantity
from argosy.workflows.lint.view.volume import source_of

_SYSTEM: Final = (
    *("/dev", "/sys", "/proc", "/lib", "/lib64", "/bin", "/sbin", "/usr", "/etc", "/opt", "/run", "/var", "/boot"),
    "/home/kubernetes",
)
# By their names: disks that are meant to be the node's own, and file systems that every node mounts.
_MEANT: Final = re.compile(
    r"local|nvme|ssd|scratch|cache|ephemeral|disk|raid|tmp|stateful_partition|nfs|lustre|fsx|gpfs|weka|ceph|shared|efs"
)


@rule("STORE007", Level.NOTE, on=Pod)
def never_mounted(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A volume that no container mounts does nothing, or was meant for one."""
    del bundle
    used = _mounted(pod)
    of_a_template = pod.document.group == "argoproj.io"  # its volumes stand for all templates
    for name, volume in pod.volumes.items():
        if name not in used and not of_a_template and pod.containers:
            yield Problem(
                volume["name"],
                f"no container mounts the volume {name!r}",
                "mount it with volumeMounts, or remove it",
            )


def _mounted(pod: Pod) -> set[str]:
    """Names of the volumes that a container mounts."""
    return {
        mount["name"].text
        for container in pod.all_containers
        for mount in [*container.node["volumeMounts"], *container.node["volumeDevices"]]
    }


@rule("STORE008", Level.ERROR, on=Pod)
def one_source(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A volume has a name of its own and exactly one source."""
    del bundle
    seen: set[str] = set()
    for volume in pod.spec["volumes"]:
        sources = [key for key in volume.entries if key != "name"]
        name = volume["name"]
        if len(sources) > 1:
            message, remedy = f"has two sources, {' and '.join(sources)}", "make it two volumes"
        elif name and name.text in seen and pod.document.group != "argoproj.io":
            message, remedy = "stands twice", "give the second another name"
        elif volume["persistentVolumeClaim"].exists and not volume.at("persistentVolumeClaim.claimName"):
            message, remedy = "names no claim", "set persistentVolumeClaim.claimName"
        else:
            seen.add(name.text)
            continue
        yield Problem(name or volume, f"the volume {name.text!r} {message}, which the API refuses", remedy)


@rule("STORE009", Level.WARNING, on=Pod)
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
            level=Level.WARNING if many and not _MEANT.search(path.text.lower()) else Level.NOTE,
        )


@rule("STORE010", Level.WARNING, on=Container)
def larger_than_the_limit(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """An emptyDir on disk counts as ephemeral storage of the pod."""
    del bundle
    limit = container.limit("ephemeral-storage")
    for mount in container.mounts.values():
        volume = container.pod.volumes.get(mount["name"].text)
        if volume is None or source_of(volume) != "emptyDir" or volume.at("emptyDir.medium"):
            continue
        size = quantity(volume.at("emptyDir.sizeLimit").text)
        if limit and size and size > limit and len(container.pod.containers) == 1:
            yield Problem(
                volume.at("emptyDir.sizeLimit"),
                f"{volume['name'].text!r} may hold {volume.at('emptyDir.sizeLimit').text}, and the pod is evicted when "
                f"it writes more than its limit of {container.limits['ephemeral-storage'].text}",
                "raise limits.ephemeral-storage, or lower sizeLimit",
            )
