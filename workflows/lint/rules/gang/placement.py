"""Where the pods of a gang may go: rules that no cluster can meet for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.queue import kueue_queue
from argosy.workflows.lint.view.selector import matches
from argosy.workflows.lint.view.workload import Role, Workload

_HOST: Final = "kubernetes.io/hostname"
_FEW: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_ZONES: Final = 3
_GPUS_OF_A_NODE: Final = 16
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(pod: Pod, kind: str) -> Iterator[Node]:
    yield from pod.spec.at(f"affinity.{kind}.{_REQUIRED}")


def selects(selector: Node, labels: Node) -> bool:
    """Whether a label selector selects labels; an empty one of an affinity selects nothing."""
    return bool(selector) and matches(selector, labels)


def _gangs(workload: Workload) -> Iterator[Role]:
    if workload.gang or (workload.document.kind in ("StatefulSet", "Deployment") and (workload.total or 0) > 1):
        yield from workload.roles


@rule("GANG026", Level.WARNING, on=Workload)
def apart(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Anti-affinity over a domain of which there are fewer than pods."""
    del bundle
    for role in _gangs(workload):
        for term in _terms(role.pod, "podAntiAffinity"):
            domain, pods = term["topologyKey"], role.replicas or 0
            if domain.text in _FEW and pods > _ZONES and selects(term["labelSelector"], role.pod.labels):
                yield Problem(
                    domain,
                    f"{pods} pods of which no two may share a {domain.text.rpartition('/')[2]}: those beyond the "
                    "number of them stay Pending, and the gang never starts",
                    f"write topologyKey: {_HOST} for one pod per node",
                )


@rule("GANG027", Level.WARNING, on=Workload)
def on_one_node(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Affinity, a node's name or a host's label that put all pods onto one node."""
    del bundle
    for role in _gangs(workload):
        spec, gpus = role.pod.spec, (role.replicas or 0) * (role.pod.gpus or 0)
        for node in (spec["nodeName"], spec["nodeSelector"][_HOST]):
            if node and not node.open and (role.replicas or 0) > 1 and role.pod.gpus:
                yield Problem(
                    node,
                    f"all {role.replicas} pods are tied to the node {node.text}"
                    + (", past the scheduler" if node.key == "nodeName" else ""),
                    "select nodes by a label that all of them have",
                )
        for term in _terms(role.pod, "podAffinity"):
            together = term["topologyKey"].text == _HOST and selects(term["labelSelector"], role.pod.labels)
            if together and gpus > _GPUS_OF_A_NODE:
                yield Problem(
                    term["topologyKey"],
                    f"{role.replicas} pods with {gpus} GPUs must share one node",
                    "write the label of a rack or a block as topologyKey, or leave the placement to the queue",
                )


@rule("GANG028", Level.ERROR, on=Workload)
def both(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Together and apart at once."""
    del bundle
    for role in _gangs(workload):
        if (role.replicas or 0) < 2:
            continue
        near = {
            term["topologyKey"].text
            for term in _terms(role.pod, "podAffinity")
            if selects(term["labelSelector"], role.pod.labels)
        }
        for term in _terms(role.pod, "podAntiAffinity"):
            if term["topologyKey"].text in near and selects(term["labelSelector"], role.pod.labels):
                yield Problem(
                    term["topologyKey"],
                    f"the pods must share a {term['topologyKey'].text} and must not: the second one never starts",
                    "remove one of the two",
                )


@rule("GANG029", Level.WARNING, on=Workload)
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


@rule("GANG030", Level.WARNING, on=Workload)
def spread(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """DoNotSchedule for a gang; a spread that counts other pods."""
    del bundle
    for role in _gangs(workload):
        for each in role.pod.spec["topologySpreadConstraints"]:
            strict = (each["whenUnsatisfiable"].text or "DoNotSchedule") == "DoNotSchedule"
            own = selects(each["labelSelector"], role.pod.labels) or _operators_own(each["labelSelector"])
            if not own and each["labelSelector"]:
                yield Problem(
                    each["labelSelector"],
                    "the spread counts pods with labels that these pods do not have, so it spreads nothing",
                    "write the labels of the pods' own template",
                )
            elif strict and role.pod.gpus and workload.gang:
                yield Problem(
                    each["whenUnsatisfiable"] if each["whenUnsatisfiable"] else each,
                    "DoNotSchedule for a gang: one pod that would make the spread uneven stays Pending, and all wait "
                    "for it",
                    "write whenUnsatisfiable: ScheduleAnyway, or ask for the topology by the queue's annotations",
                    level=Level.NOTE,
                )


@rule("GANG031", Level.WARNING, on=Workload)
def topology_without_queue(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Kueue's topology annotations without Kueue."""
    del bundle
    if kueue_queue(workload) or workload.document.labels["kueue.x-k8s.io/queue-name"].exists:
        return
    for role in workload.roles if workload.document.kind not in ("TrainingRuntime", "ClusterTrainingRuntime") else []:
        for key, node in role.pod.annotations.entries.items():
            if key.startswith("kueue.x-k8s.io/podset-") and not role.pod.labels["kueue.x-k8s.io/queue-name"]:
                yield Problem(
                    node,
                    f"{key} without the label kueue.x-k8s.io/queue-name on the {workload.document.kind}: Kueue does "
                    "not manage it, so the topology is not asked for",
                    "label the object with its queue",
                )
                break
