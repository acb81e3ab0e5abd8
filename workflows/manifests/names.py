"""The names by which the pods of a workload find each other.

https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-hostname-and-subdomain-field: a pod has the
record ``HOSTNAME.SUBDOMAIN`` when a headless Service of the subdomain's name selects it. Each controller sets hostname
and subdomain in its own way, or makes a Service for each pod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


@dataclass(frozen=True, slots=True)
class PodNames:
    """Host names ``STEM-I`` (``STEM-I-J`` in a JobSet) of a role's pods.

    Args:
        stem: what stands before the indices.
        sizes: how many of each index there are, from 0; None where that is not known. Without
            sizes the stem is the whole name.
        subdomains: of which one is the pods'; empty when they have none.
        made: the controller makes the Service itself (or one per pod).
        searched: the controller has the pods search the subdomain, so that a host's name is enough.
    """

    stem: str
    sizes: tuple[int | None, ...]
    subdomains: tuple[str, ...] = ()
    made: bool = False
    per_pod: bool = False
    searched: bool = False

    def has(self, host: str) -> bool:
        """Whether one of the pods has this host name."""
        if not host.startswith(self.stem):
            return False
        found = re.fullmatch(r"(?:-(\d+))" * len(self.sizes), host[len(self.stem) :])
        if found is None:
            return False
        return all(size is None or int(index) < size for index, size in zip(found.groups(), self.sizes, strict=True))

    def looks_like(self, host: str) -> bool:
        """Whether the host name is meant to be one of them: the stem, and something behind it."""
        return host == self.stem or host.startswith(f"{self.stem}-")

    @property
    def first(self) -> str:
        """The name of the first pod as the others write it."""
        host = self.stem + "-0" * len(self.sizes)
        return host if self.per_pod or not self.subdomains else f"{host}.{self.subdomains[0]}"


def pod_names(workload: Workload, role: Role) -> PodNames | None:
    """The names of a role's pods; None when the pods have none that could be written down, or it is not known."""
    document = workload.document
    name = document.metadata["name"]
    if not name.text or name.open:
        return None
    maker = {"jobset": _jobset, "trainer": _trainer, "volcano": _volcano, "job": _job, "pod": _pod}.get(workload.family)
    if maker is not None:
        return maker(name.text, document, role)
    if document.kind == "StatefulSet":
        start = document.spec.at("ordinals.start").number or 0
        sizes = (None if role.replicas is None else role.replicas + start,)
        return PodNames(name.text, sizes, _texts(document.spec["serviceName"]))
    if document.kind == "MPIJob":
        subdomains = (name.text, f"{name.text}-worker")
        return PodNames(f"{name.text}-{role.name.lower()}", (role.replicas,), subdomains, made=True, searched=True)
    if document.group == "kubeflow.org":
        return PodNames(f"{name.text}-{role.name.lower()}", (role.replicas,), made=True, per_pod=True)
    return None


def _texts(*nodes: Node) -> tuple[str, ...]:
    return tuple(node.text for node in nodes if node.text)


def _job(name: str, document: Document, role: Role) -> PodNames | None:
    if document.kind != "Job" or role.job["completionMode"].text != "Indexed":
        return None
    return PodNames(name, (role.completions,), _texts(role.template.at("spec.subdomain")))


def _pod(name: str, document: Document, role: Role) -> PodNames | None:
    spec = role.template["spec"]
    host = spec["hostname"] or document.metadata["name"]
    return None if host.open else PodNames(host.text, (), _texts(spec["subdomain"]))


def _jobset(name: str, document: Document, role: Role) -> PodNames | None:
    if role.job["completionMode"].text == "NonIndexed":
        return None
    times = role.node["replicas"]
    size = role.completions if role.job["completions"] else (role.job["parallelism"].number or 1)
    subdomain = document.spec.at("network.subdomain").text or name
    count = (times.number if times else 1, size)
    return PodNames(f"{name}-{role.name}", count, (subdomain,), made=True)


def _trainer(name: str, document: Document, role: Role) -> PodNames | None:
    if document.kind != "TrainJob":
        return None
    nodes = document.spec.at("trainer.numNodes")
    return PodNames(f"{name}-node", (1, nodes.number if nodes else None), (name,), made=True)


def _volcano(name: str, document: Document, role: Role) -> PodNames | None:
    return PodNames(f"{name}-{role.name}", (role.replicas,), (name,), made=names_made(document))


def names_made(document: Document) -> bool:
    """Whether a Volcano Job gets a headless Service: by its plugin ``svc``, which others switch on too.

    https://github.com/volcano-sh/volcano/tree/master/pkg/controllers/job/plugins/distributed-framework
    """
    return bool(set(document.spec["plugins"].entries) & {"svc", "pytorch", "tensorflow", "mpi", "hcclrank", "ray"})
