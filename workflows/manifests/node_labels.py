"""The node labels that a pod asks for."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod


def selected_labels(pod: Pod) -> Iterator[tuple[str, str]]:
    """(key, value) of the node labels that the pod asks for by selector or required affinity with ``In``."""
    for key, value in pod.spec["nodeSelector"].entries.items():
        yield key, value.text
    terms = pod.spec.at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    for expression in _expressions(terms):
        if expression["operator"].text == "In":
            for value in expression["values"]:
                yield expression["key"].text, value.text


def _expressions(terms: Node) -> Iterator[Node]:
    for term in terms:
        yield from term["matchExpressions"]
