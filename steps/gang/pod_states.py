"""What the API server says of a pod, as the supervisor reads it. Pure functions over plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from argosy.steps.cluster.containers import condition, lost_node, main_of
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import Phase, PodState
from argosy.steps.gang.runtimes import COMPLETION_INDEX, FIRST_INDEX

_PHASES: Mapping[str, Phase] = {"Pending": "Pending", "Succeeded": "Succeeded", "Failed": "Failed"}
_SIGNALS = 128
"""A container that a signal ended has the exit code 128 + its number."""
_BY_SIGTERM = (int(ExitCode.PREEMPTED), _SIGNALS + 15, _SIGNALS + 9)
"""How one ends whose pod is deleted before it has a part in the gang."""


def pod_state(pod: Mapping[str, Any], gone_at: float = 0.0, index: str = COMPLETION_INDEX) -> PodState:
    """``gone_at``: when it was deleted, seconds since 1970; 0 while it is there. ``index``: the label of its number."""
    status = pod.get("status", {})
    given = str(status.get("phase") or "Pending")
    phase = _PHASES.get(given, "Running")
    ended = _terminated(status)
    reason, message = _why(status, ended)
    if phase not in ("Succeeded", "Failed") and gone_at:
        phase, reason = "Failed", reason or "Deleted"
        message = message or "the pod was deleted while it ran"
    code, deleted = ended.get("exitCode"), _deleted(pod["metadata"])
    if phase == "Failed" and not reason and deleted and code in _BY_SIGTERM:
        reason, message = "Deleted", message or "the pod was deleted before it was of use"
    return PodState(
        name=pod["metadata"]["name"],
        index=_index(pod, index),
        node=pod.get("spec", {}).get("nodeName", ""),
        phase=phase,
        exit_code=None if code is None else int(code),
        signal=int(code) - _SIGNALS if code is not None and _SIGNALS < int(code) < _SIGNALS + 65 else None,
        reason=reason,
        message=message,
        time=_seconds(ended.get("finishedAt")) or gone_at,
        deleted=deleted or gone_at,
    )


def taken_back(state: PodState) -> PodState:
    """A pod of a workload that was suspended: it is told to stop, and without this nobody says what for."""
    if not state.deleted or state.reason not in ("", "Deleted"):
        return state
    return replace(state, reason="Preempted", message="its workload was suspended: the queue took its nodes back")


def numbered(states: Iterable[PodState]) -> list[PodState]:
    """Pods that no label numbers, counted by their names, those of the gang's first part first, as launch is ranked."""
    ordered = sorted(states, key=lambda state: (state.index, state.name))
    return [replace(state, index=number) for number, state in enumerate(ordered)]


@dataclass(frozen=True)
class Outcome:
    """How a JobSet or Job ended: ``reason`` and ``message`` of its last condition."""

    succeeded: bool
    reason: str = ""
    message: str = ""


def outcome_of(workload: Mapping[str, Any]) -> Outcome | None:
    """How a pod ended; None while it has not."""
    status = workload.get("status", {})
    for kind in ("Completed", "Complete", "Failed"):
        found = condition(status, kind)
        if found.get("status") == "True":
            return Outcome(kind != "Failed", str(found.get("reason", "")), str(found.get("message", "")))
    return None


def is_lost(pod: Mapping[str, Any]) -> bool:
    """Whether its node does not answer: such a pod may run on, unseen, for as long as its node is away."""
    return lost_node(pod.get("status", {})) is not None


def _deleted(metadata: Mapping[str, Any]) -> float:
    """When it was asked for: the timestamp is when its grace will be over."""
    return max(0.0, _seconds(metadata.get("deletionTimestamp")) - (metadata.get("deletionGracePeriodSeconds") or 0))


def _index(pod: Mapping[str, Any], label: str) -> int:
    metadata = pod["metadata"]
    labels = metadata.get("labels", {})
    found = labels.get(label) or metadata.get("annotations", {}).get(label) or "0"
    return int(found) + int(labels.get(FIRST_INDEX, "0"))


def _terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    statuses = status.get("containerStatuses") or []
    found: Mapping[str, Any] = (main_of(statuses) if statuses else {}).get("state", {}).get("terminated") or {}
    return found


def _why(status: Mapping[str, Any], ended: Mapping[str, Any]) -> tuple[str, str]:
    """Kubernetes' reason and message, the one nearest to the root first."""
    if (lost := lost_node(status)) is not None:
        return "NodeLost", lost
    disruption = condition(status, "DisruptionTarget")
    if disruption.get("status") == "True":
        return disruption.get("reason") or "DisruptionTarget", disruption.get("message", "")
    if status.get("reason"):  # Evicted, NodeShutdown, DeadlineExceeded, UnexpectedAdmissionError...
        return status["reason"], status.get("message", "")
    if ended.get("reason") == "Unknown":  # containerd's word for what ran there before its node lost its power
        return "ContainerStatusUnknown", "its node forgot what ran there: it was restarted"
    if ended:  # its own last words, where it left some in /dev/termination-log
        return "" if ended.get("reason") in ("Completed", "Error") else ended.get("reason", ""), ended.get(
            "message", ""
        )
    for waiting in _waiting(status):
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return waiting["reason"], waiting.get("message", "")
    scheduled = condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return scheduled.get("reason", ""), scheduled.get("message", "")
    return "", ""


def _waiting(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for each in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        if each.get("state", {}).get("waiting"):
            yield each["state"]["waiting"]


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
