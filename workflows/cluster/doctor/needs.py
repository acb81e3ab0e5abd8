"""What a compiled workflow needs of a cluster, read from its YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.contract.objects import KAI_QUEUE, KUEUE_PRIORITY, KUEUE_QUEUE, KUEUE_TOPOLOGY
from argosy.workflows.cluster.store import secrets_of
from argosy.workflows.cluster.submission import accounts_of
from argosy.workflows.engine.reading import read_documents

_TOPOLOGIES = tuple(map(KUEUE_TOPOLOGY.format, ("required", "preferred")))


@dataclass(frozen=True)
class Needs:
    """Names by kind; ``gang`` are the documents of the gang, the last makes the pods (``pod``, ``nnodes`` of them)."""

    accounts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    queue: str = ""
    queue_priority: str = ""
    kai_queue: str = ""
    topology: tuple[str, ...] = ()
    """Labels of nodes that name a rack or block in which the gang's pods are to be."""
    gang: tuple[Mapping[str, Any], ...] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)
    nnodes: int = 0


def needs_of(workflow: Mapping[str, Any]) -> Needs:
    """Of a Workflow or WorkflowTemplate."""
    gang = _gang(workflow)
    both: list[Any] = [workflow, *gang]
    pods = list(_pods(gang))
    labels = (gang[-1].get("metadata") or {}).get("labels") or {} if gang else {}
    accounts = accounts_of([workflow]) | {str(each) for each in _values(gang, "serviceAccountName")}
    return Needs(
        accounts=tuple(sorted(accounts)) or ("default",),
        secrets=tuple(sorted(secrets_of(both))),
        claims=_sorted(_values(both, "claimName")),
        images=_sorted(_values(both, "image")),
        priority_classes=_sorted(_values(both, "priorityClassName")),
        queue=str(labels.get(KUEUE_QUEUE, "")),
        queue_priority=str(labels.get(KUEUE_PRIORITY, "")),
        kai_queue=str(labels.get(KAI_QUEUE, "")),
        topology=_topology(gang),
        gang=tuple(gang),
        pod=pods[0][1] if pods else {},
        nnodes=sum(count for count, _ in pods),
    )


def _topology(gang: list[dict[str, Any]]) -> tuple[str, ...]:
    by_kueue = [value for name in _TOPOLOGIES for value in _values(gang, name)]
    by_group = [each["key"] for found in _values(gang, "topology") if isinstance(found, list) for each in found]
    attracted = [each for found in _values(gang, "podAffinity") for each in _values(found, "topologyKey")]
    return _sorted(iter([*by_kueue, *by_group, *attracted]))


def _sorted(values: Iterator[Any]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if isinstance(value, str)}))


def _gang(workflow: Mapping[str, Any]) -> list[dict[str, Any]]:
    for template in (workflow.get("spec") or {}).get("templates") or []:
        for artifact in (template.get("inputs") or {}).get("artifacts") or []:
            if artifact.get("name") == "gang" and "data" in (artifact.get("raw") or {}):
                return read_documents(str(artifact["raw"]["data"]).encode(), "the gang's manifest")
    return []


def _pods(root: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(how many, their ``spec``) of every pod template."""
    if isinstance(root, Mapping):
        spec = (root.get("template") or {}).get("spec") or {}
        if "containers" in spec:
            yield int(root.get("parallelism") or root.get("replicas") or 1), spec
            return
        root = list(root.values())
    for each in root if isinstance(root, list) else ():
        yield from _pods(each)


def _values(root: Any, key: str) -> Iterator[Any]:
    if isinstance(root, Mapping):
        if key in root:
            yield root[key]
        root = list(root.values())
    for each in root if isinstance(root, list) else ():
        yield from _values(each, key)
