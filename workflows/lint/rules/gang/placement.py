"""Where the pods of a gang may go: rules that no cluster can meet for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod, Role
from argosy.workflows.manifests.selector import matches
from argosy.workflows.manifests.workload import Workload

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(pod: Pod, kind: str) -> Iterator[Node]:
    yield from pod.spec.at(f"affinity.{kind}.{_REQUIRED}")


def selects(selector: Node, labels: Node) -> bool:
    """Whether a label selector selects labels; an empty one of an affinity selects nothing."""
    return bool(selector) and matches(selector, labels)


def _gangs(workload: Workload) -> Iterator[Role]:
    if workload.gang or (workload.document.kind in ("StatefulSet", "Deployment") and (workload.total or 0) > 1):
        yield from workload.roles


@rule("GANG029", Level.NOTE, on=Workload)
def strangers(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Required affinity to pods that nobody is."""
    for role in _gangs(workload):
        for term in _terms(role.pod, "podAffinity"):
            selector = term["labelSelector"]
            if not selector or selects(selector, role.pod.labels) or term["namespaces"] or term["namespaceSelector"]:
                continue
            if _operators_own(selector) or any(selects(selector, pod.labels) for _, pod in bundle.pods):
                continue
            yield Problem(
                selector,
                "the pods must stand beside pods that are not among the files given, nor are they such themselves: "
                "without them none is ever scheduled",
                "write the labels of the pods' own template, or make the rule preferred",
            )


def _operators_own(selector: Node) -> bool:
    """Whether it selects by labels that a controller adds to its pods."""
    keys = [*selector["matchLabels"].entries, *(each["key"].text for each in selector["matchExpressions"])]
    return any("/" in key or key in ("job-name", "controller-uid") for key in keys)
