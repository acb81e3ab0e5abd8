"""Labels and annotations of queues and schedulers: read by somebody, and where that one looks."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from argosy.workflows.lint.finding import Edit, Level, Problem, RenameKey
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.workload import Workload


class Key(NamedTuple):
    """Where a key is read.

    Args:
        place: ``labels``, ``annotations`` or ``""`` for both.
        on: ``object`` (the workload), ``pod`` (its template) or ``""`` for both.
        reader: who reads it.
    """

    place: str
    on: str
    reader: str


_KUEUE: Final = "kueue.x-k8s.io/"
KEYS: Final[dict[str, Key]] = {
    _KUEUE + "queue-name": Key("labels", "object", "Kueue"),
    _KUEUE + "priority-class": Key("labels", "object", "Kueue"),
    _KUEUE + "max-exec-time-seconds": Key("labels", "object", "Kueue"),
    _KUEUE + "pod-group-name": Key("", "pod", "Kueue"),
    _KUEUE + "pod-group-total-count": Key("annotations", "pod", "Kueue"),
    _KUEUE + "pod-group-fast-admission": Key("annotations", "pod", "Kueue"),
    _KUEUE + "retriable-in-group": Key("annotations", "pod", "Kueue"),
    _KUEUE + "pod-group-pod-index": Key("labels", "pod", "Kueue"),
    _KUEUE + "pod-group-pod-index-label": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-required-topology": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-preferred-topology": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-unconstrained-topology": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-slice-required-topology": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-slice-size": Key("annotations", "pod", "Kueue"),
    _KUEUE + "podset-group-name": Key("annotations", "pod", "Kueue"),
    _KUEUE + "job-min-parallelism": Key("annotations", "object", "Kueue"),
    _KUEUE + "job-completions-equal-parallelism": Key("annotations", "object", "Kueue"),
    "scheduling.k8s.io/group-name": Key("annotations", "pod", "Volcano"),
    "scheduling.volcano.sh/group-name": Key("annotations", "pod", "Volcano"),
    "scheduling.volcano.sh/queue-name": Key("annotations", "", "Volcano"),
    "scheduling.volcano.sh/group-min-member": Key("annotations", "", "Volcano"),
    "scheduling.volcano.sh/group-min-resources": Key("annotations", "", "Volcano"),
    "scheduling.x-k8s.io/pod-group": Key("labels", "pod", "the coscheduling plugin"),
    "pod-group.scheduling.sigs.k8s.io/name": Key("labels", "pod", "ACK's scheduler"),
    "pod-group.scheduling.sigs.k8s.io/min-available": Key("labels", "pod", "ACK's scheduler"),
    "kai.scheduler/queue": Key("labels", "", "KAI's pod grouper"),
    "kai.scheduler/topology": Key("annotations", "", "KAI"),
    "kai.scheduler/topology-required-placement": Key("annotations", "", "KAI"),
    "kai.scheduler/topology-preferred-placement": Key("annotations", "", "KAI"),
    "alpha.jobset.sigs.k8s.io/exclusive-topology": Key("annotations", "", "JobSet"),
    "alpha.jobset.sigs.k8s.io/node-selector": Key("annotations", "object", "JobSet"),
    "ray.io/gang-scheduling-enabled": Key("labels", "object", "KubeRay"),
    "ray.io/scheduler-name": Key("labels", "object", "KubeRay"),
}
"""The keys that queues and schedulers read, from their API types."""

_DEAD: Final = {
    "scheduling.k8s.io/pod-group": "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/podgroup": "scheduling.x-k8s.io/pod-group",
    "scheduling.sigs.k8s.io/pod-group": "scheduling.x-k8s.io/pod-group",
    "scheduling.x-k8s.io/group-name": "scheduling.x-k8s.io/pod-group",
    "scheduling.x-k8s.io/pod-group-name": "scheduling.x-k8s.io/pod-group",
    "scheduling.volcano.sh/pod-group": "scheduling.k8s.io/group-name",
    "volcano.sh/group-name": "scheduling.k8s.io/group-name",
    "volcano.sh/pod-group": "scheduling.k8s.io/group-name",
    "volcano.sh/queue": "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name": "scheduling.volcano.sh/queue-name",
    "scheduling.k8s.io/queue-name": "scheduling.volcano.sh/queue-name",
    "kueue.sigs.k8s.io/queue-name": _KUEUE + "queue-name",
    "kueue.k8s.io/queue-name": _KUEUE + "queue-name",
    _KUEUE + "queue": _KUEUE + "queue-name",
    _KUEUE + "local-queue": _KUEUE + "queue-name",
    _KUEUE + "local-queue-name": _KUEUE + "queue-name",
    "kai.scheduler/queue-name": "kai.scheduler/queue",
    "jobset.sigs.k8s.io/exclusive-topology": "alpha.jobset.sigs.k8s.io/exclusive-topology",
}
_PREFIXES: Final = ("kueue.x-k8s.io/", "scheduling.x-k8s.io/", "scheduling.volcano.sh/", "scheduling.k8s.io/")
# Written by the controllers themselves, or by an administrator; nobody's mistake.
_OWN: Final = frozenset(
    (
        "kueue.x-k8s.io/managed",
        "kueue.x-k8s.io/multikueue",
        "scheduling.volcano.sh/preemptable",
        "kueue.x-k8s.io/podset",
    )
)


def _held(workload: Workload) -> Iterator[tuple[str, str, str, Node]]:
    """(object or pod, labels or annotations, key, value) of all metadata, each once."""
    plain = workload.document.kind == "Pod"
    places = [("pod" if plain else "object", workload.document.metadata)]
    if not plain:
        places += [("pod", pod.metadata) for pod in workload.pods]
        places += [("object", role.node.at("template.metadata")) for role in workload.roles if role.job]
    seen: set[int] = set()
    for on, metadata in places:
        if id(metadata.yaml) in seen:
            continue
        seen.add(id(metadata.yaml))
        for place in ("labels", "annotations"):
            for key, value in metadata[place].entries.items():
                yield on, place, key, value


@rule("GANG001", Level.WARNING, on=Workload)
def read_by_nobody(workload: Workload) -> Iterator[Problem]:
    """A key that no scheduler and no queue reads."""
    for _, _, key, value in _held(workload):
        right = _DEAD.get(key, "") if (workload.family, key) != ("ray", "volcano.sh/queue-name") else ""
        if not right and key not in KEYS and key.startswith(_PREFIXES) and key not in _OWN:
            right = next(iter(get_close_matches(key, KEYS, 1, 0.88)), "")
        if right:
            edits: list[Edit] = [RenameKey(value, right)] if _same_place(value, right) else []
            known = KEYS[right]
            where = f"{known.place.rstrip('s') or 'label'} {right}"
            yield Problem(
                value,
                f"{key} is read by nothing: the pods are scheduled one by one",
                f"{known.reader} reads the {where}{' of the pod template' if known.on == 'pod' else ''}",
                edits,
            )


def _same_place(value: Node, right: str) -> bool:
    held = value.parent
    return held is not None and held.key == KEYS[right].place and right not in held


@rule("GANG002", Level.WARNING, on=Workload)
def wrong_place(workload: Workload) -> Iterator[Problem]:
    """A label where an annotation is read, or the other way round."""
    for _, place, key, value in _held(workload):
        known = KEYS.get(key)
        if known is not None and known.place and known.place != place:
            yield Problem(
                value,
                f"{key} stands among the {place}, and {known.reader} reads it from the {known.place}",
                f"write it below metadata.{known.place}",
            )


@rule("GANG003", Level.WARNING, on=Workload)
def wrong_object(workload: Workload) -> Iterator[Problem]:
    """A key on the pods that is read from the object, or the other way round."""
    if workload.family in ("pod", "argo") or workload.document.kind == "TrainJob":
        return
    document = workload.document
    for on, place, key, value in _held(workload):
        known = KEYS.get(key)
        if known is None or not known.on or known.on == on or (known.place and known.place != place):
            continue
        if known.on == "object" and document.metadata[place][key]:
            continue
        if known.on == "pod" and any(pod.metadata[place][key] for pod in workload.pods):
            continue
        if key == _KUEUE + "queue-name":
            effect = f"Kueue does not see the {document.kind}: it starts at once, or its pods are admitted one by one"
        else:
            effect = f"{known.reader} does not see it there"
        template = "metadata of the pod template" if known.on == "pod" else f"metadata of the {document.kind}"
        yield Problem(
            value,
            f"{key} stands on the {_named(on, document.kind)}: {effect}",
            f"write it in the {template}",
            level=Level.NOTE if workload.family == "other" else None,  # Kueue admits a Deployment's pods one by one
        )


def _named(on: str, kind: str) -> str:
    return "pod template" if on == "pod" else kind
