"""``v1`` Services, and which pods of the files they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.labels import selects
from argosy.workflows.lint.view.workload import Role, Workload

if TYPE_CHECKING:
    from argosy.workflows.lint.bundle import Bundle


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

    def ports(self) -> Iterator[tuple[Node, int]]:
        """(where, number) of each port, and of each target port that is a number."""
        for port in self.spec["ports"]:
            for key in ("port", "targetPort"):
                number = port[key].number
                if number is not None:
                    yield port[key], number


def service(bundle: Bundle, name: str, near: Document) -> Service | None:
    """The Service of this name; None when it is not among the files."""
    found = bundle.find("Service", name, near) if name else None
    return Service(found) if found is not None else None
