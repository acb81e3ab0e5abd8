"""Names, labels and their values: what Kubernetes takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, RenameKey
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.schema.fields import type_of_kind
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PORT: Final = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9]|-(?!-)){0,13}[a-z0-9]|[a-z]")
# Their names are parts of DNS names: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_ONE_LABEL: Final = (
    *("Service", "Namespace", "JobSet", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob", "JAXJob", "PaddleJob"),
)
_ANY_NAME: Final = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
_NVIDIA: Final = (
    "nvidia.com/gpus",
    "nvidia.com/gpu",
    "nvidia/gpu",
    "nvidia.com/cuda",
    "alpha.kubernetes.io/nvidia-gpu",
)
_MEANT: Final = {
    **dict.fromkeys(_NVIDIA, "nvidia.com/gpu"),
    **dict.fromkeys(("amd.com/gpus", "amd.com/gpu", "amd/gpu"), "amd.com/gpu"),
}
_PLAIN_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage", "storage"))


def _known(document: Document, bundle: Bundle) -> bool:
    """Whether it is an object of Kubernetes' or an operator's: other tools have files with a ``kind`` too."""
    return bool(type_of_kind(document.api_version, document.kind)) or bundle.workload(document) is not None


@rule("API008", Level.WARNING, on=Document)
def object_name(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A name that Kubernetes refuses; a warning, for programs, triggers and Kustomize write over it."""
    node = document.metadata["name"]
    if (
        not node.is_scalar
        or node.open
        or not re.search(r"^[^$]*[a-z0-9][^$]*$", node.text, re.IGNORECASE)  # a patch's '*', a shell's $NAME
        or document.kind in _ANY_NAME
        or not _known(document, bundle)
    ):
        return
    fits = _LABEL if document.kind in _ONE_LABEL else _SUBDOMAIN
    if fits.fullmatch(node.text) is None or len(node.text) > 253:
        also = "" if fits is _LABEL else " and dots"
        most = 63 if fits is _LABEL else 253
        yield Problem(
            node,
            f"{node.text!r} is no name for a {document.kind}, and the API refuses it",
            f"lower-case letters, digits, dashes{also}, a letter or digit at both ends, at most {most} characters",
        )


@rule("API010", Level.ERROR, on=Pod)
def parts(pod: Pod) -> Iterator[Problem]:
    """Names of containers, volumes and ports: form, and that each stands once."""
    seen: dict[str, int] = {}
    # Argo calls a template's own container main: https://github.com/argoproj/argo-workflows, workflowpod.go
    own = {id(pod.role.node[key].yaml) for key in ("container", "script")} if pod.role is not None else ()
    for container in pod.all_containers:
        name = container.node["name"]
        if id(container.node.yaml) not in own:
            yield from _part(name, "container")
        if name.text and name.text in seen and pod.document.group != "argoproj.io":
            yield Problem(
                name,
                f"two containers are named {name.text!r}, the other on line {seen[name.text]}: the API refuses the pod",
                "give each container of a pod a name of its own",
            )
        seen[name.text] = name.line
        for port in container.ports:
            if port["name"].is_scalar and not port["name"].open and _PORT.fullmatch(port["name"].text) is None:
                yield Problem(
                    port["name"],
                    f"{port['name'].text!r} is no name of a port, and the API refuses it",
                    "at most 15 lower-case letters, digits and dashes, one letter among them",
                )
    volumes: set[str] = set()
    for volume in pod.spec["volumes"]:
        yield from _part(volume["name"], "volume")
        if volume["name"].text and volume["name"].text in volumes and pod.document.group != "argoproj.io":
            message = f"two volumes are named {volume['name'].text!r}, and the API refuses the pod"
            yield Problem(volume["name"], message, "name each volume once")
        volumes.add(volume["name"].text)


def _part(name: Node, what: str) -> Iterator[Problem]:
    if name.is_scalar and not name.open and "$" not in name.text and _LABEL.fullmatch(name.text) is None:
        yield Problem(
            name,
            f"{name.text!r} is no name for a {what}, and the API refuses it",
            "lower-case letters, digits and dashes, at most 63, a letter or digit at both ends",
        )


_TO_REPLACE: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
"""A name that a program fills in: ``GPU_RESOURCE``."""


@rule("API011", Level.WARNING, on=Container)
def resource_names(container: Container) -> Iterator[Problem]:
    """A resource without a domain that is none of Kubernetes' own."""
    for held in (container.limits, container.requests):
        for name, value in held.entries.items():
            known = name in _PLAIN_RESOURCES or name.startswith("hugepages-") or "/" in name or "{" in name
            if not known and not _TO_REPLACE.fullmatch(name):
                yield Problem(
                    value,
                    f"{name} is no resource: Kubernetes knows cpu, memory, ephemeral-storage and names with a domain",
                    "write nvidia.com/gpu" if "gpu" in name.lower() else "write cpu, memory or DOMAIN/NAME",
                )
            elif name.lower() in _MEANT and name != _MEANT[name.lower()]:
                what = f"{name} is offered by no device plugin: the pod stays Pending"
                right = _MEANT[name.lower()]
                yield Problem(value, what, f"write {right}", [RenameKey(value, right)], Level.WARNING)
