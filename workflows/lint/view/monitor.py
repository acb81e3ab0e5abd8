"""``monitoring.coreos.com`` ServiceMonitor and PodMonitor, and what they select among the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.selector import matches

if TYPE_CHECKING:
    from argosy.workflows.lint.bundle import Bundle


@dataclass(frozen=True)
class Monitor:
    """A ServiceMonitor or a PodMonitor."""

    document: Document

    @property
    def of_services(self) -> bool:
        """Whether it selects Services, and not pods."""
        return self.document.kind == "ServiceMonitor"

    @property
    def selector(self) -> Node:
        """``spec.selector``."""
        return self.document.spec["selector"]

    @cached_property
    def endpoints(self) -> Sequence[Node]:
        """What it reads of each Service or pod."""
        spec = self.document.spec
        return [each for each in spec["endpoints" if self.of_services else "podMetricsEndpoints"] if each.is_mapping]

    def in_namespace(self, namespace: str) -> bool:
        """Whether it looks into a namespace: its own, unless ``namespaceSelector`` says more. Unknown ones count."""
        chosen = self.document.spec["namespaceSelector"]
        if chosen["any"].flag:
            return True
        names = [each.text for each in chosen["matchNames"]] or [self.document.namespace]
        return not namespace or "" in names or namespace in names

    def services(self, bundle: Bundle) -> list[Document]:
        """The Services among the files that it selects."""
        return [
            each
            for each in bundle.of_kind("Service")
            if each.group == "" and self.in_namespace(each.namespace) and matches(self.selector, each.labels)
        ]

    def pods(self, bundle: Bundle) -> list[Pod]:
        """The pods among the files that it selects; labels that controllers add count as they may be."""
        return [
            pod
            for _, pod in bundle.pods
            if self.in_namespace(pod.document.namespace) and matches(self.selector, pod.labels, added=True)
        ]


def monitor(document: Document) -> Monitor | None:
    """A monitor of an object; None for an object of another kind."""
    kinds = ("ServiceMonitor", "PodMonitor")
    return Monitor(document) if document.group == "monitoring.coreos.com" and document.kind in kinds else None
