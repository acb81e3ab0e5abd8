"""What a pod shares with its node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod

_SOCKETS: Final = ("docker.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock")


@rule("SEC001", Level.WARNING, on=Container)
def privileged(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A privileged container is root on its node."""
    del bundle
    if container.privileged:
        rdma = bool(container.rdma_resources)
        yield Problem(
            container.security["privileged"],
            "a privileged container has every device and every right of its node's root",
            "drop it: the adapters are given by the device plugin, and IPC_LOCK is all that RDMA needs besides"
            if rdma
            else "drop it and add the one capability that is needed; GPUs are given by limits, RDMA needs IPC_LOCK",
        )


@rule("SEC002", Level.WARNING, on=Pod)
def host_network(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """The node's network: needed where RDMA adapters live in the host's namespace, and nowhere else."""
    if not pod.host_network:
        return
    workload = bundle.workload(pod.document)
    direct = any(_has_adapters(each) for each in (workload.pods if workload is not None else [pod]))
    yield Problem(
        pod.spec["hostNetwork"],
        "hostNetwork: every port of the pod is open on the node, no NetworkPolicy holds, and two pods of a node want "
        "the same ports",
        "keep it only for RoCE adapters that no CNI plugin moves into the pod; InfiniBand and TCP do not need it",
        level=Level.NOTE if direct else Level.WARNING,
    )


def _has_adapters(pod: Pod) -> bool:
    paths = [volume.at("hostPath.path").text for volume in pod.volumes.values()]
    return bool(pod.rdma_resources) or any(path.startswith("/dev/infiniband") for path in paths)


@rule("SEC003", Level.WARNING, on=Pod)
def host_processes(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """The node's processes."""
    del bundle
    if pod.spec["hostPID"].flag:
        yield Problem(
            pod.spec["hostPID"],
            "hostPID: the container sees and may signal every process of the node, and reads their environment",
            "remove it; ranks of one pod see each other without it",
        )


@rule("SEC004", Level.WARNING, on=Pod)
def runtime_socket(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """The container runtime's socket, or the node's whole disk, is root on the node."""
    del bundle
    for volume in pod.volumes.values():
        path = volume.at("hostPath.path")
        name = path.text.rstrip("/").rpartition("/")[2]
        if name in _SOCKETS:
            message = f"{path.text}: whoever reaches the container runtime starts containers as root of the node"
        elif path.text and path.text.rstrip("/") in ("", "/etc", "/root", "/var/lib/kubelet", "/var/run", "/run"):
            message = f"{path.text} of the node: its credentials can be read, and its programs replaced"
        else:
            continue
        yield Problem(path, message, "remove the volume; build images outside of the cluster, with BuildKit or Kaniko")
