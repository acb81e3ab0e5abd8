"""From events and the engine's state to a record. Pure: the same input gives the same record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.steps.contract.layout import run_prefix
from argosy.steps.record.bundle import evidence_of
from argosy.steps.record.committed import CommittedCheckpoint
from argosy.steps.record.end import end_step_of
from argosy.steps.record.facts import (
    Admission,
    Evaluation,
    GangFacts,
    GateDecision,
    NodeStaging,
    Promotion,
    RunRecord,
    StepNode,
)
from argosy.steps.record.goodput import idle_in, measure, worked_from
from argosy.steps.record.injected import injected_of
from argosy.steps.record.naming import node_name
from argosy.steps.record.order import in_order, until_another
from argosy.steps.record.preflight import latest_preflight
from argosy.steps.record.reading import moment, number, text, texts, whole
from argosy.steps.record.restarts import cause_of, restarts_of, set_aside_in, stillborn_of, told_at, training_end_of
from argosy.steps.record.slow_ranks import slow_ranks_of
from argosy.steps.record.spares import spares_of
from argosy.steps.record.stalling import stalled_now
from argosy.steps.record.streaming import streaming_of
from argosy.steps.record.termination import read_message
from argosy.steps.record.transport import findings_of, transports_of
from argosy.steps.record.waiting import waiting_of
from argosy.steps.runlog import Event

STORE_URI = "argosy.dev/store-uri"
RUN_NAME = "argosy.dev/run-name"
COMMAND = "argosy.dev/command"


def prefix_of(state: Mapping[str, Any]) -> str:
    """Key prefix of the run in its store; "" for a workflow that is none of ours."""
    name = text(_mapping(state, "annotations"), RUN_NAME)
    run_id = text(_mapping(state, "parameters"), "run-id") or text(state, "name")
    return run_prefix(name, run_id) if name and run_id else ""


def _is_over(state: Mapping[str, Any]) -> bool:
    """Whether what has not ended by now never will."""
    return bool(text(state, "interrupted")) or text(state, "phase") in ("Failed", "Error")


def _concluded(state: Mapping[str, Any], events: Sequence[Event]) -> float | None:
    """When the run ended, where only its store is asked: the workflow's own times are not there."""
    last = _last(events, "finalized") if text(state, "phase") in ("Succeeded", "Failed", "Error") else None
    return last.time if last else None


def _lasted(state: Mapping[str, Any], events: Sequence[Event], now: float) -> float:
    """Until when; a gang that hangs, or is queued, tells nothing while that goes on."""
    goes_on = text(state, "phase") == "Running" and not state.get("interrupted") and "silent_since" not in state
    return max([now if goes_on else 0.0, *(event.time for event in events)])


def build_record(events: Sequence[Event], state: Mapping[str, Any], now: float = 0.0) -> RunRecord:
    """``state`` is the engine's ``state.json``; events may be of any order and from any writer. ``now`` in seconds
    since 1970, 0: when the last of them came.
    """
    ordered = in_order(until_another(events, state))
    annotations, parameters = _mapping(state, "annotations"), _mapping(state, "parameters")
    started, finished = moment(state, "started"), moment(state, "finished") or _concluded(state, ordered)
    restarts, gangs = restarts_of(ordered, over=_is_over(state)), _gangs(ordered)
    streaming, training = streaming_of(ordered, restarts), training_end_of(ordered)
    checkpoints = _checkpoints(ordered, {each.restored_digest for each in restarts})
    snapshot_fields = snapshot.fields if (snapshot := _last(ordered, "snapshot_taken")) else {}
    training_end = training.time if training else _lasted(state, ordered, now) or started or 0.0
    mute = _trained(checkpoints, training) and not any(len(each.points) > 1 for each in restarts)
    waits, judged, idle = streaming.waits if streaming else (), _since_training(ordered), idle_in(ordered)
    return RunRecord(
        name=text(annotations, RUN_NAME),
        run_id=text(parameters, "run-id") or text(state, "name"),
        workflow=text(state, "name"),
        store_uri=text(annotations, STORE_URI),
        yaml_sha256=text(state, "yaml_sha256"),
        namespace=text(state, "namespace"),
        phase=text(state, "phase") or "Pending",
        message=read_message(text(state, "message"))[1],
        interrupted=text(state, "interrupted"),
        silent_since=moment(state, "silent_since"),
        started=started if started is not None else (ordered[0].time if ordered else None),
        ended=finished,
        idle=tuple((each.began, each.ended) for each in idle if each.left),
        parameters={key: str(value) for key, value in parameters.items()},
        nodes=_nodes(state),
        dataset_digest=text(snapshot_fields, "dataset_digest"),
        dataset_objects=whole(snapshot_fields, "objects") or 0,
        dataset_bytes=whole(snapshot_fields, "bytes") or 0,
        admission=_admission(ordered),
        staging=_staging(ordered),
        streaming=streaming,
        waiting=waiting_of(ordered, training_end, over=bool(training or finished)),
        stalled=stalled_now(ordered),
        evidence=evidence_of(ordered),
        slow_ranks=slow_ranks_of(ordered),
        skipped_steps=_skipped(ordered),
        gangs=gangs,
        restarts=restarts,
        stillborn=stillborn_of(ordered),
        checkpoints=checkpoints,
        injected=tuple(injected_of(event) for event in _all(ordered, "injected")),
        excluded_nodes=_excluded(ordered),
        budgets=_budgets(ordered),
        train_cause=cause_of(training) if training else "",
        train_exit_code=whole(training.fields, "exit_code") if training else None,
        train_ended=training.time if training else None,
        checkpoint_digest=_checkpoint_digest(checkpoints, training),
        end_step=end_step_of(ordered),
        evaluation=_evaluation(judged),
        gate=_gate(judged),
        promotion=_promotion(ordered),
        goodput=None if mute else measure(restarts, worked_from(ordered, idle), training_end, waits),
        transports=transports_of(ordered),
        environment_findings=findings_of(ordered),
        preflight=latest_preflight(ordered),
        spares=spares_of(ordered),
    )


def _trained(checkpoints: Sequence[CommittedCheckpoint], training: Event | None) -> bool:
    return bool(checkpoints) or (training is not None and not cause_of(training))


def _mapping(state: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = state.get(key)
    return value if isinstance(value, Mapping) else {}


def _all(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def _last(events: Sequence[Event], kind: str) -> Event | None:
    found = _all(events, kind)
    return found[-1] if found else None


def _nodes(state: Mapping[str, Any]) -> tuple[StepNode, ...]:
    raw = state.get("nodes")
    nodes = [node for node in raw if isinstance(node, Mapping)] if isinstance(raw, list) else []
    found = [
        StepNode(
            name=node_name(node),
            template=text(node, "templateName"),
            phase=text(node, "phase"),
            message=read_message(text(node, "message"))[1],
            cause=read_message(text(node, "message"))[0],
            began=moment(node, "startedAt"),
            ended=moment(node, "finishedAt"),
            exit_code=whole(node, "exitCode"),
            log=text(node, "log"),
        )
        for node in nodes
        if node.get("type") == "Pod"
    ]
    return tuple(sorted(found, key=lambda node: (node.began is None, node.began or 0.0)))


def _admission(events: Sequence[Event]) -> Admission | None:
    event = _last(events, "admission")
    if event is None:
        return None
    decision, reason = (text(event.fields, key) for key in ("decision", "reason"))
    return Admission(decision, reason, local=event.fields.get("local") is True)


def _staging(events: Sequence[Event]) -> tuple[NodeStaging, ...]:
    """One for each time a node got its data: a restart finds it there and says so again."""
    under_way: dict[str, list[Event]] = {}
    found = []
    for event in events:
        if event.kind not in ("staging", "staged"):
            continue
        node = text(event.fields, "node")
        under_way.setdefault(node, []).append(event)
        if event.kind == "staged":
            found.append(_node_staging(node, under_way.pop(node)))
    return (*found, *(_node_staging(node, mine) for node, mine in under_way.items()))


def _node_staging(node: str, events: list[Event]) -> NodeStaging:
    ends = [event for event in events if event.kind == "staged"]
    merged: dict[str, Any] = {}
    for event in events:
        merged.update(event.fields)
    seconds = number(merged, "seconds") or 0.0
    began = min(events[0].time, ends[-1].time - seconds) if ends else events[0].time
    return NodeStaging(
        node=node,
        began=began,
        ended=ends[-1].time if ends else None,
        bytes=whole(merged, "bytes") or 0,
        fetched_bytes=whole(merged, "fetched_bytes") or 0,
        seconds=seconds,
    )


def _gangs(events: Sequence[Event]) -> tuple[GangFacts, ...]:
    deleted = {text(event.fields, "gang"): event.time for event in _all(events, "gang_deleted")}
    return tuple(
        GangFacts(
            attempt=whole(event.fields, "attempt") or 0,
            name=text(event.fields, "gang"),
            created=event.time,
            deleted=deleted.get(text(event.fields, "gang")),
            nnodes=whole(event.fields, "nnodes") or 0,
            nproc_per_node=whole(event.fields, "nproc_per_node") or 0,
            excluded=texts(event.fields, "excluded"),
            capacity=text(event.fields, "capacity"),
            preemptions=whole(event.fields, "preemptions") or 0,
        )
        for event in _all(events, "gang_created")
    )


def _checkpoints(events: Sequence[Event], restored: set[str]) -> tuple[CommittedCheckpoint, ...]:
    by_digest: dict[str, Event] = {}
    aside, told = set_aside_in(events), told_at(events)
    for event in _all(events, "checkpoint_committed"):
        by_digest.setdefault(text(event.fields, "digest"), event)
    return tuple(
        CommittedCheckpoint(
            time=event.time,
            step=whole(event.fields, "step") or 0,
            digest=digest,
            bytes=whole(event.fields, "bytes") or 0,
            seconds=number(event.fields, "seconds"),
            generation=whole(event.fields, "generation"),
            final=bool(event.fields.get("final")),
            restored=bool(digest) and digest in restored,
            step_from=text(event.fields, "step_from"),
            told=told.get(whole(event.fields, "step")),
            set_aside=aside.get(digest, ""),
        )
        for digest, event in by_digest.items()
    )


def _skipped(events: Sequence[Event]) -> tuple[tuple[int, int], ...]:
    found = (event.fields for event in _all(events, "skipped"))
    return tuple((whole(fields, "first") or 0, whole(fields, "last") or 0) for fields in found)


def _excluded(events: Sequence[Event]) -> tuple[tuple[str, str], ...]:
    found = (event.fields for event in _all(events, "node_excluded"))
    return tuple((text(fields, "node"), text(fields, "cause")) for fields in found)


def _budgets(events: Sequence[Event]) -> tuple[tuple[str, int, int], ...]:
    latest = {text(event.fields, "cause"): event.fields for event in _all(events, "budget")}
    return tuple((cause, whole(fields, "spent") or 0, whole(fields, "limit") or 0) for cause, fields in latest.items())


def _checkpoint_digest(checkpoints: Sequence[CommittedCheckpoint], training: Event | None) -> str:
    named = text(training.fields, "checkpoint_digest") if training else ""
    return named or next((each.digest for each in reversed(checkpoints) if not each.set_aside), "")


def _since_training(events: Sequence[Event]) -> Sequence[Event]:
    """Without the evaluations of earlier workflows of this run id: what they judged is not what came of this one."""
    gangs = (at for at, event in enumerate(events) if event.kind == "gang_created")
    return events[max(gangs, default=0) :]


def _evaluation(events: Sequence[Event]) -> Evaluation | None:
    if (event := _last(events, "evaluated")) is None or (value := number(event.fields, "value")) is None:
        return None
    return Evaluation(text(event.fields, "metric"), value, text(event.fields, "checkpoint_digest"))


def _gate(events: Sequence[Event]) -> GateDecision | None:
    event = _last(events, "gated")
    if event is None:
        return None
    decision, reason = text(event.fields, "decision"), text(event.fields, "reason")
    return GateDecision(decision, reason, number(event.fields, "floor"), number(event.fields, "baseline"))


def _promotion(events: Sequence[Event]) -> Promotion | None:
    event = _last(events, "promoted")
    if event is None:
        return None
    pointer, digest, previous = (text(event.fields, key) for key in ("pointer", "digest", "previous"))
    return Promotion(event.time, pointer, digest, previous, bool(event.fields.get("rollback")))
