"""What a compiled workflow needs of a cluster, read from its YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.contract.objects import KAI_QUEUE, KUEUE_PRIORITY, KUEUE_QUEUE, KUEUE_TOPOLOGY
from argosy.workflows.cluster.store import secrets_of
from argosy.workflows.cluster.submission import accounts_of
from argosy.workflows.engine.reading import read_documents

_OF_ARGO = {"workflows.argoproj.io/workflow": "argosy-doctor", "workflows.argoproj.io/completed": "false"}
"""Labels that every pod of a Workflow bears: a policy may tell them by these."""
_TOPOLOGIES = tuple(map(KUEUE_TOPOLOGY.format, ("required", "preferred")))


@dataclass(frozen=True)
class Needs:
    """Names by kind; ``gang`` are the documents of the gang, the last makes the pods (``pod``, ``nnodes`` of them)."""

    accounts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    queue: str = ""
    queue_priority: str = ""
    kai_queue: str = ""
    volcano_queue: str = ""
    topology: tuple[str, ...] = ()
    """Labels of nodes that name a rack or block in which the gang's pods are to be."""
    gang: tuple[Mapping[str, Any], ...] = ()
    pod: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the gang's pods: a policy may ask for some."""
    step: Mapping[str, Any] = field(default_factory=dict)
    """``metadata`` and ``spec`` of a step's pod, without the containers that Argo adds."""
    nnodes: int = 0
    least: int = 0
    """With how many of them an elastic gang begins; all of them where somebody places it whole."""


def needs_of(workflow: Mapping[str, Any]) -> Needs:
    """Of a Workflow or WorkflowTemplate."""
    gang = _gang(workflow)
    both: list[Any] = [workflow, *gang]
    pods = list(_pods(gang))
    labels = (gang[-1].get("metadata") or {}).get("labels") or {} if gang else {}
    nnodes = sum(count for count, _ in pods)
    whole = {KUEUE_QUEUE, KAI_QUEUE} & set(labels) or any(
        each.get("kind") == "PodGroup" and not _of_volcano(each) for each in gang
    )
    pulls = {str(each["name"]) for found in _values(both, "imagePullSecrets") for each in found}
    accounts = accounts_of([workflow]) | {str(each) for each in _values(gang, "serviceAccountName")}
    return Needs(
        accounts=tuple(sorted(accounts)) or ("default",),
        secrets=tuple(sorted(secrets_of(both) - pulls)),
        pull_secrets=tuple(sorted(pulls)),
        claims=_sorted(_values(both, "claimName")),
        images=_sorted(_values(both, "image")),
        priority_classes=_sorted(_values(both, "priorityClassName")),
        queue=str(labels.get(KUEUE_QUEUE, "")),
        queue_priority=str(labels.get(KUEUE_PRIORITY, "")),
        kai_queue=str(labels.get(KAI_QUEUE, "")),
        volcano_queue=next((each["spec"]["queue"] for each in gang if _of_volcano(each)), ""),
        topology=_topology(gang),
        gang=tuple(gang),
        pod=pods[0][1].get("spec") or {} if pods else {},
        labels=(pods[0][1].get("metadata") or {}).get("labels") or {} if pods else {},
        step=_step(workflow),
        nnodes=nnodes,
        least=nnodes if whole else min(_least(workflow, nnodes), nnodes),
    )


def _of_volcano(document: Mapping[str, Any]) -> bool:
    """A group, which begins with the least that it is given, or a Job."""
    return ".volcano.sh/" in str(document.get("apiVersion"))


def _least(workflow: Mapping[str, Any], otherwise: int) -> int:
    """What the run's supervisor is told of it."""
    words = (str(word) for args in _values(workflow, "args") if isinstance(args, list) for word in args)
    found = (word.partition("=")[2] for word in words if word.startswith("--min-nnodes="))
    return next((int(text) for text in found if text.isdecimal()), otherwise)


def _step(workflow: Mapping[str, Any]) -> dict[str, Any]:
    """Of our first step: a template of somebody's own may be what it is by patches."""
    spec = workflow.get("spec") or {}
    below = (spec.get("templateDefaults") or {}).get("container") or {}
    for template in spec.get("templates") or []:
        container = {**(template.get("container") or {})}
        if any(str(word).startswith("argosy.steps.") for word in container.get("command") or []):
            both = {**spec, **template}
            pod = {
                key: both[key] for key in ("serviceAccountName", "securityContext", "imagePullSecrets") if key in both
            }
            named = container.pop("env", [])
            container |= {"env": [each for each in named if "{{" not in str(each)]} if named else {}
            volumes = [*(spec.get("volumes") or []), *(template.get("volumes") or [])]
            own = [
                (each.get(key) or {}).get("labels") or {}
                for each, key in ((spec, "podMetadata"), (template, "metadata"))
            ]
            return {
                "metadata": {"labels": {**_OF_ARGO, **own[0], **own[1]}},
                "spec": {**pod, "volumes": volumes, "containers": [{**below, **container, "name": "main"}]},
            }
    return {}


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
    """(how many, their template) of every pod template."""
    if isinstance(root, Mapping):
        template = root.get("template") or {}
        if "containers" in (template.get("spec") or {}):
            yield int(root.get("parallelism") or root.get("replicas") or 1), template
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
