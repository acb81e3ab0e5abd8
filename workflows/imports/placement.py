"""Who makes the pods, and who places them together: the manifest's own words for both, into ``[gang]``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.steps.cluster.kinds import (
    JOB,
    JOB_SET,
    MPI_JOB,
    PYTORCH_JOB,
    RAY_JOB,
    TF_JOB,
    TRAIN_JOB,
    VOLCANO_JOB,
    XGBOOST_JOB,
)
from argosy.steps.cluster.kinds import Kind as Made
from argosy.steps.contract.objects import KUEUE_PRIORITY, KUEUE_QUEUE
from argosy.workflows.gang.node import SCHEDULERS
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.source import Source
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.pod_group import COSCHEDULING_GROUPS, VOLCANO_GROUPS, group_of
from argosy.workflows.manifests.queue import KAI_QUEUES
from argosy.workflows.spec.placement import ILLEGAL, RUNTIMES

_RUNTIMES: Final[Mapping[str, tuple[str, Made]]] = {
    "pytorch": ("pytorchjob", PYTORCH_JOB),
    "tensorflow": ("tfjob", TF_JOB),
    "xgboost": ("xgboostjob", XGBOOST_JOB),
    "mpi": ("mpijob", MPI_JOB),
    "trainer": ("trainjob", TRAIN_JOB),
    "jobset": ("jobset", JOB_SET),
    "job": ("job", JOB),
    "volcano": ("volcano", VOLCANO_JOB),
    "ray": ("rayjob", RAY_JOB),
}
"""Family of a workload -> the runtime that makes the same kind of object."""
_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
POD_MARKS: Final = (_VOLCANO_QUEUE, *VOLCANO_GROUPS, *COSCHEDULING_GROUPS, *KAI_QUEUES)
"""Labels and annotations of pods of which is spoken here."""
MARKS: Final = (*POD_MARKS, KUEUE_QUEUE, KUEUE_PRIORITY)
"""The same of the object."""
GROUPED_BY: Final = (SCHEDULERS["volcano"], SCHEDULERS["coscheduling"])
"""Schedulers of groups: who names one wants the pods placed together."""
_PLACED: Final = "gang.placement"
_QUEUE: Final = "gang.queue"


@dataclass(frozen=True)
class _Mark:
    """A value that says ``placement``; where ``into`` is not gang.placement, it is a name that goes there."""

    placement: str
    node: Node
    into: str = _PLACED

    @property
    def speaks(self) -> bool:
        """Whether it says so by itself: a template's hole is no queue, and a priority none either."""
        return self.into == _PLACED or (self.into == _QUEUE and _NAME.fullmatch(self.node.text) is not None)


def take_placement(source: Source, bundle: Bundle, draft: Draft, account: Account) -> None:
    """Write ``gang.runtime``, ``placement``, ``queue``, ``queue_priority`` and a group's ``priority_class``."""
    document, pod = source.workload.document, source.training[0].pod
    runtime = _runtime(source, draft, account)
    said = group_of(pod)
    group = bundle.find("PodGroup", said[1].text, document) if said is not None else None
    spec = group.spec if group is not None else source.placing["-"]
    own = source.workload.spec if runtime == "volcano" else source.placing
    if group is not None:
        account.changed(group.root, "the supervisor makes a PodGroup for every gang", _PLACED)
    marks = [each for each in _marks(source, pod, document, (own["queue"], spec["queue"])) if each.node.exists]
    placement = _placement(runtime, marks)
    if placement != "none":
        draft.put(_PLACED, placement)
    for mark in marks:
        _take(mark, runtime, placement, draft, account)
    _least(
        [own["minAvailable"], spec["minMember"], spec.at("schedulingPolicy.gang.minCount")], source, placement, account
    )
    _priority([own["priorityClassName"], own["priorityClass"], spec["priorityClassName"]], draft, account)
    for node in (*map(source.placing.at, _WAITS), spec["scheduleTimeoutSeconds"], spec["minResources"]):
        account.changed(node, "what the pods ask for is counted; see deadlines.placement_seconds")
    for node in (source.workload.spec["networkTopology"], source.placing.at("volcano.networkTopology")):
        account.lost(node, "gang.placement knows no topology of Volcano's: see gang.topology")


_WAITS: Final = ("minResources", "scheduleTimeoutSeconds", "coscheduling.scheduleTimeoutSeconds")


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


def _marks(source: Source, pod: Pod, document: Document, queues: Sequence[Node]) -> Iterator[_Mark]:
    """Who says most plainly who places the pods is asked first; ``queues`` are of Volcano's groups."""
    yield _Mark("kueue", document.labels[KUEUE_QUEUE], _QUEUE)
    yield _Mark("kueue", document.labels[KUEUE_PRIORITY], "gang.queue_priority")
    for key in KAI_QUEUES:
        yield from (_Mark("kai", labels[key], _QUEUE) for labels in (document.labels, pod.labels))
    yield _Mark("native", pod.spec["schedulingGroup"])
    for node in (*queues, pod.annotations[_VOLCANO_QUEUE], document.annotations[_VOLCANO_QUEUE]):
        yield _Mark("volcano", node, _QUEUE)
    for key in VOLCANO_GROUPS:
        yield from (_Mark("volcano", marked[key]) for marked in (pod.annotations, document.annotations))
    for key in COSCHEDULING_GROUPS:
        yield _Mark("coscheduling", pod.labels[key])
    for name, scheduler in zip(("volcano", "coscheduling"), GROUPED_BY, strict=True):
        yield _Mark(name, source.placing[name])
        if pod.spec["schedulerName"].text == scheduler:
            yield _Mark(name, pod.spec["schedulerName"])
    if source.workload.family == "volcano":
        yield _Mark("volcano", source.workload.spec["schedulerName"])


def _placement(runtime: str, marks: Sequence[_Mark]) -> str:
    if runtime == "volcano":
        return "volcano"
    said = next((each.placement for each in marks if each.speaks), "none")
    return said if said in RUNTIMES[runtime] else "none"


def _take(mark: _Mark, runtime: str, placement: str, draft: Draft, account: Account) -> None:
    if mark.placement != placement:
        why = f"gang.placement is {placement}" if placement != "none" else f"it does not go with runtime {runtime}"
        account.lost(mark.node, ILLEGAL.get((runtime, mark.placement), why))
    elif mark.into == _PLACED:
        account.kept(mark.node, _PLACED)
    elif _NAME.fullmatch(mark.node.text) and draft.get(mark.into, mark.node.text) == mark.node.text:
        draft.put(mark.into, mark.node.text, mark.node)
        account.kept(mark.node, mark.into)
    else:
        account.by_hand(mark.node, f"one name is wanted: write {mark.into}", mark.into)


def _least(nodes: Sequence[Node], source: Source, placement: str, account: Account) -> None:
    """How many are placed together: all of a fixed gang; of an elastic one Volcano takes the fewest."""
    low, high = source.nodes
    for node in nodes:
        if placement == "none":
            why = 'who places that many at once is not named: gang.placement = "volcano" where Volcano is installed'
            account.by_hand(node, why, _PLACED)
        elif node.number == (low if placement == "volcano" else high) and placement != "kueue":
            account.kept(node, "gang.nnodes")
        elif node.number is None or node.number in (source.workload.total, high):
            account.changed(node, "all nodes of the gang are placed together", "gang.nnodes")
        else:
            why = f'ranks are started on all nodes: write nnodes = "{node.number}:{high}" if fewer will do'
            account.changed(node, why, "gang.nnodes")


def _priority(nodes: Sequence[Node], draft: Draft, account: Account) -> None:
    for node in (each for each in nodes if each):
        if draft.get("gang.priority_class", node.text) == node.text:
            draft.put("gang.priority_class", node.text, node)
            account.kept(node, "gang.priority_class")
        else:
            account.changed(node, "the pods name a priority class of their own", "gang.priority_class")
