"""``v1`` Services, and which pods of the files they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.labels import selects
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


@dataclass(frozen=True)
class Service:
    """A Service of the files."""

    document: Document

    @cached_property
    def spec(self) -> Node:
        """Its spec."""
        return self.document.spec

    @property
    def headless(self) -> bool:
        """Whether it has no address of its own, so that its name means its pods."""
        return self.spec["clusterIP"].text == "None"

    @property
    def external(self) -> bool:
        """Whether it is reached from outside of the cluster."""
        return self.spec["type"].text in ("NodePort", "LoadBalancer")

    @property
    def selector(self) -> Node:
        """Which pods it stands for."""
        return self.spec["selector"]

    def selects(self, workload: Workload, role: Role, bundle: Bundle) -> bool:
        """Whether the role's pods can be among its own."""
        one, other = self.document.namespace, workload.document.namespace
        if not self.selector.entries or (one and other and one != other):
            return False
        return selects(self.selector, bundle.labels(workload, role))


def service(bundle: Bundle, name: str, near: Document) -> Service | None:
    """The Service of this name; None when it is not among the files."""
    found = bundle.find("Service", name, near) if name else None
    return Service(found) if found is not None else None
