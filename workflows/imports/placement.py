"""Who makes the pods, and who places them together: the manifest's own words for both, into ``[gang]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.steps.cluster.kinds import (
    JOB,
    JOB_SET,
    MPI_JOB,
    POD_GROUP,
    PYTORCH_JOB,
    TF_JOB,
    TRAIN_JOB,
    VOLCANO_JOB,
    XGBOOST_JOB,
    Kind,
)
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.source import Source
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.pod_group import COSCHEDULING_GROUPS, VOLCANO_GROUPS, group_of
from argosy.workflows.manifests.queue import KAI_QUEUES, KUEUE_QUEUE

_RUNTIMES: Final[Mapping[str, tuple[str, Kind]]] = {
    "pytorch": ("pytorchjob", PYTORCH_JOB),
    "tensorflow": ("tfjob", TF_JOB),
    "xgboost": ("xgboostjob", XGBOOST_JOB),
    "mpi": ("mpijob", MPI_JOB),
    "trainer": ("trainjob", TRAIN_JOB),
    "jobset": ("jobset", JOB_SET),
    "job": ("job", JOB),
    "volcano": ("volcano", VOLCANO_JOB),
}
"""Family of a workload -> the runtime that makes the same kind of object."""
_KUEUE: Final = {KUEUE_QUEUE: "gang.queue", "kueue.x-k8s.io/priority-class": "gang.queue_priority"}
_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_NATIVE: Final = ("jobset", "job")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_UNKNOWN: Final = (*COSCHEDULING_GROUPS, *KAI_QUEUES)
MARKS: Final = (*_KUEUE, _VOLCANO_QUEUE, *VOLCANO_GROUPS)
"""Labels and annotations of the object and its pods of which is spoken here."""
POD_MARKS: Final = (*MARKS[len(_KUEUE) :], *_UNKNOWN)
SCHEDULERS: Final = ("volcano", "scheduler-plugins-scheduler")
"""Those of groups: who names one wants his pods placed together."""
_NOBODY: Final = "gang.placement knows no such group or queue: nodes are waited for by the channel"
_OF_KUEUE: Final = "Kueue admits the whole gang"
_PLACED: Final = "gang.placement"


@dataclass(frozen=True)
class _Group:
    """What is said of the pods as a group, wherever it is said; missing nodes where nothing is."""

    queues: list[Node]
    least: list[Node]
    priorities: list[Node]


def take_placement(source: Source, bundle: Bundle, draft: Draft, account: Account) -> None:
    """Write ``gang.runtime``, ``placement``, ``queue``, ``queue_priority`` and a group's ``priority_class``."""
    document, pod = source.workload.document, source.training[0].pod
    runtime = _runtime(source, draft, account)
    held = _pod_group(pod, bundle, document)
    group = _group(source, pod, held)
    if held is not None:
        account.changed(held.root, "the supervisor makes a PodGroup for every gang", _PLACED)
    placement = _placement(source, runtime, pod, group)
    if placement != "none":
        draft.put(_PLACED, placement)
    _kueue(document, placement, draft, account)
    _queue(group, placement, draft, account)
    _least(source, group, placement, account)
    _priority(group, draft, account)
    _marks(source, pod, placement, account)
    for key in ("minResources", "scheduleTimeoutSeconds"):
        account.changed(source.placing[key], "what the pods ask for is counted; see deadlines.placement_seconds")


def _runtime(source: Source, draft: Draft, account: Account) -> str:
    """The manifest's own kind, as far as argosy makes it."""
    document = source.workload.document
    runtime, kind = _RUNTIMES.get(source.workload.family, ("jobset", JOB_SET))
    if runtime != "jobset":
        draft.put("gang.runtime", runtime, document.root["kind"])
    for key, made in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if document.root[key].text == made:
            account.kept(document.root[key], "gang.runtime")
        else:
            account.changed(document.root[key], f"argosy makes a {kind.kind} of {kind.api_version}", "gang.runtime")
    return runtime


def _pod_group(pod: Pod, bundle: Bundle, document: Document) -> Document | None:
    """The PodGroup among the files that the pods say they belong to."""
    found = group_of(pod)
    return bundle.find("PodGroup", found[1].text, document) if found is not None else None


def _group(source: Source, pod: Pod, held: Document | None) -> _Group:
    own = source.workload.spec if source.workload.family == "volcano" else source.placing
    document = source.workload.document
    spec = held.spec if held is not None else source.placing["-"]
    return _Group(
        queues=[own["queue"], pod.annotations[_VOLCANO_QUEUE], document.annotations[_VOLCANO_QUEUE], spec["queue"]],
        least=[own["minAvailable"], spec["minMember"], spec.at("schedulingPolicy.gang.minCount")],
        priorities=[own["priorityClassName"], own["priorityClass"], spec["priorityClassName"]],
    )


def _placement(source: Source, runtime: str, pod: Pod, group: _Group) -> str:
    """Who places the pods whole: who says so most plainly is asked first."""
    said = group_of(pod)
    if runtime == "volcano":
        return "volcano"
    if _NAME.fullmatch(source.workload.document.labels[KUEUE_QUEUE].text):
        return "kueue"
    if said is not None and said[0] == "native":
        return "native" if runtime in _NATIVE else "none"
    by_volcano = pod.spec["schedulerName"].text == "volcano" or source.placing["volcano"].exists
    return "volcano" if by_volcano or any(group.queues) or (said is not None and said[0] == "volcano") else "none"


def _kueue(document: Document, placement: str, draft: Draft, account: Account) -> None:
    for key, field in _KUEUE.items():
        value = document.labels[key]
        if placement == "kueue" and _NAME.fullmatch(value.text):
            draft.put(field, value.text, value)
            account.kept(value, field)
        else:
            account.lost(value, _NOBODY if placement != "volcano" else "a Volcano Job queues in Volcano")


def _queue(group: _Group, placement: str, draft: Draft, account: Account) -> None:
    """Of several queues, the first."""
    for node in (each for each in group.queues if each):
        taken = draft.get("gang.queue") if placement == "volcano" else None
        if placement != "volcano":
            account.lost(node, _OF_KUEUE if placement == "kueue" else _NOBODY)
        elif taken is None and _NAME.fullmatch(node.text):
            draft.put("gang.queue", node.text, node)
            account.kept(node, "gang.queue")
        elif taken == node.text:
            account.kept(node, "gang.queue")
        else:
            account.by_hand(node, "a Queue's name is wanted: write gang.queue", "gang.queue")


def _least(source: Source, group: _Group, placement: str, account: Account) -> None:
    """How many are placed together: all of a fixed gang, the fewest of an elastic one."""
    low, high = source.nodes
    for node in (each for each in group.least if each):
        if placement == "none":
            why = 'who places that many at once is not named: gang.placement = "volcano" where Volcano is installed'
            account.by_hand(node, why, _PLACED)
        elif node.number == (high if placement == "native" else low) and placement != "kueue":
            account.kept(node, "gang.nnodes")
        elif node.number is None or node.number in (source.workload.total, high):
            account.changed(node, "all nodes of the gang are placed together", "gang.nnodes")
        else:
            why = f'ranks are started on all nodes: write nnodes = "{node.number}:{high}" if fewer will do'
            account.changed(node, why, "gang.nnodes")


def _priority(group: _Group, draft: Draft, account: Account) -> None:
    for node in (each for each in group.priorities if each):
        if draft.get("gang.priority_class", node.text) == node.text:
            draft.put("gang.priority_class", node.text, node)
            account.kept(node, "gang.priority_class")
        else:
            account.changed(node, "the pods name a priority class of their own", "gang.priority_class")


def _marks(source: Source, pod: Pod, placement: str, account: Account) -> None:
    """What the pods say of their group and of who binds them."""
    for key in VOLCANO_GROUPS:
        for node in (pod.annotations[key], source.workload.document.annotations[key]):
            account.changed(node, "every gang has a group of its own", _PLACED if placement == "volcano" else "")
    for key in _UNKNOWN:
        account.lost(pod.labels[key], _NOBODY)
    scheduler, native = pod.spec["schedulerName"], pod.spec["schedulingGroup"]
    if scheduler.text == "volcano" and placement == "volcano":
        account.kept(scheduler, _PLACED)
    elif scheduler.text in SCHEDULERS:
        account.changed(scheduler, _OF_KUEUE if placement == "kueue" else _NOBODY, _PLACED)
    if placement == "native":
        account.changed(native, "every gang has a group of its own", _PLACED)
    else:
        account.lost(native, f"{POD_GROUP.kind}s of Kubernetes go with runtime jobset or job")
    if source.workload.family == "volcano":
        account.kept(source.workload.spec["schedulerName"], _PLACED)
    if placement == "volcano":
        account.kept(source.placing["volcano"], _PLACED)
    else:
        account.changed(source.placing["volcano"], _OF_KUEUE, _PLACED)
    account.lost(source.placing["coscheduling"], _NOBODY)
    for node in (source.workload.spec["networkTopology"], source.placing.at("volcano.networkTopology")):
        account.lost(node, "gang.placement knows no topology of Volcano's")
