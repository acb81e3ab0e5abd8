"""The time line: what ran when, on which gang, and what cut it off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from argosy.steps.contract.causes import Cause
from argosy.steps.record.committed import CommittedCheckpoint
from argosy.steps.record.facts import GangFacts, RunRecord, StepNode
from argosy.steps.record.goodput import first_step_began, kept_until
from argosy.steps.record.restart import Restart
from argosy.steps.record.story import ending, fate_of_lost
from argosy.steps.record.wording import duration, short, size
from argosy.workflows.report.scale import Scale, Tick, time_ticks

LABEL_PERCENT_PER_LETTER = 0.75
"""Width of a letter on a 1100 px chart; a label that would not fit its bar is left to the tooltip."""
MOST_MARKS = 40
"""Beyond it marks would cover each other."""


@dataclass(frozen=True)
class Bar:
    """A stretch of time; ``kind`` is a CSS class."""

    x: float
    width: float
    kind: str
    label: str
    tooltip: str


@dataclass(frozen=True)
class Mark:
    """A moment: ``failure`` (numbered), ``checkpoint``, ``restored`` or ``injected``."""

    x: float
    kind: str
    label: str
    tooltip: str


@dataclass(frozen=True)
class Lane:
    """One row of the time line."""

    label: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Timeline:
    """Rows over one axis."""

    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    seconds: float


def timeline(record: RunRecord) -> Timeline | None:
    """The drawing, or None when nothing has a time yet."""
    moments = list(_moments(record))
    if not moments or max(moments) <= min(moments):
        return None
    scale = Scale(min(moments), max(moments))
    lanes = [_pipeline(record, scale), *_data(record, scale), *_gangs(record, scale)]
    return Timeline(tuple(lane for lane in lanes if lane.bars), time_ticks(scale), scale.high - scale.low)


def _moments(record: RunRecord) -> Iterator[float]:
    known: list[float | None] = [record.started, record.ended, record.train_ended]
    for node in record.nodes:
        known += [node.began, node.ended]
    for gang in record.gangs:
        known += [gang.created, gang.deleted]
    for each in record.restarts:
        known += [each.began, each.ended, *(point.time for point in each.points[-1:])]
    for staging in record.staging:
        known += [staging.began, staging.ended]
    return (moment for moment in known if moment is not None)


def _bar(scale: Scale, began: float, ended: float, kind: str, label: str, tooltip: str) -> Bar:
    x = scale.at(began)
    width = max(0.15, round(scale.at(ended) - x, 3))
    fits = width > (len(label) + 2) * LABEL_PERCENT_PER_LETTER
    return Bar(x, width, kind, label if fits else "", f"{tooltip} ({duration(max(0.0, ended - began))})")


def _pipeline(record: RunRecord, scale: Scale) -> Lane:
    bars = [
        _bar(
            scale, node.began, node.ended if node.ended is not None else scale.high, _phase(node), node.name, _say(node)
        )
        for node in record.nodes
        if node.began is not None
    ]
    return Lane("Workflow", tuple(bars), ())


def _phase(node: StepNode) -> str:
    # One that was stopped with its engine waits for the next to run it.
    return {"Succeeded": "step", "Running": "step live", "Pending": "step live"}.get(node.phase, "step bad")


def _say(node: StepNode) -> str:
    return f"{node.name}: {node.phase}" + (f", {node.message}" if node.message else "")


def _data(record: RunRecord, scale: Scale) -> list[Lane]:
    bars = [
        _bar(
            scale,
            each.began,
            each.ended if each.ended is not None else scale.high,
            "staging",
            each.node,
            f"data onto {each.node}: {size(each.bytes)}, {size(each.fetched_bytes)} fetched",
        )
        for each in record.staging
    ]
    return [Lane("Data", tuple(bars), ())]


def _gangs(record: RunRecord, scale: Scale) -> list[Lane]:
    lanes = []
    for gang in record.gangs:
        bars = [_bar(scale, gang.created, _gang_end(record, gang, scale), "gang", "", _shape(gang))]
        for index, each in enumerate(record.restarts):
            if each.attempt == gang.attempt:
                bars += _attempt(record, index, scale)
        lanes.append(Lane(_shape(gang), tuple(bars), _marks(record, gang, scale)))
    return lanes


def _shape(gang: GangFacts) -> str:
    shape = f"Gang {gang.attempt}: {gang.nnodes} × {gang.nproc_per_node} ranks"
    shape += f", {gang.capacity} nodes" if gang.capacity else ""
    return f"{shape}, without {', '.join(gang.excluded)}" if gang.excluded else shape


def _gang_end(record: RunRecord, gang: GangFacts, scale: Scale) -> float:
    if gang.deleted is not None:
        return gang.deleted
    return record.train_ended if record.train_ended is not None else scale.high


def _attempt(record: RunRecord, index: int, scale: Scale) -> list[Bar]:
    """Start-up, the steps that were kept, the steps that were lost."""
    each, number = record.restarts[index], index + 1
    end = attempt_end(record, index, scale.high)
    if not each.points:
        return [_bar(scale, each.began, end, "starting", "", f"attempt {number}: starting")]
    kept = kept_until(record.restarts, index)
    times = [point.time for point in each.points if each.base < point.step <= kept]
    first = first_step_began(each)
    stuck = each.points[-1].time if each.cause == Cause.HANG else end
    turn = max([first, *times]) if kept < each.last_step else stuck
    bars = [_bar(scale, each.began, first, "starting", "", f"attempt {number}: imports, rendezvous, restore")]
    if turn > first and kept > each.base:
        text = f"attempt {number}: steps {each.base + 1} to {kept}"
        bars.append(_bar(scale, first, turn, "kept", f"{max(0, each.base)} → {kept}", text))
    if stuck > turn:
        text = f"attempt {number}: steps {kept + 1} to {each.last_step}: {fate_of_lost(record, index)}"
        bars.append(_bar(scale, turn, stuck, "lost", "", text))
    if end > stuck:
        bars.append(_bar(scale, stuck, end, "stuck", "", f"attempt {number}: no step after {each.last_step}"))
    return bars


def attempt_end(record: RunRecord, index: int, now: float) -> float:
    """When an attempt ended: as reported, else its last sign of life."""
    each = record.restarts[index]
    if each.ended is not None:
        return each.ended
    if index + 1 == len(record.restarts):
        return record.train_ended if record.train_ended is not None else now
    return each.points[-1].time if each.points else each.began


def _marks(record: RunRecord, gang: GangFacts, scale: Scale) -> tuple[Mark, ...]:
    end = _gang_end(record, gang, scale)
    marks = [
        Mark(
            scale.at(each.time), "restored" if each.restored else "checkpoint", "", _checkpoint(each.step, each.digest)
        )
        for each in _spread(record)
        if gang.created <= each.time <= end
    ]
    marks += [
        Mark(scale.at(each.time), "injected", "", f"injected: {each.words}")
        for each in record.injected
        if gang.created <= each.time <= end
    ]
    for index, each in enumerate(record.restarts):
        if each.attempt == gang.attempt and each.failed:
            moment = attempt_end(record, index, scale.high)
            marks.append(Mark(scale.at(moment), "failure", str(index + 1), _failure(index, each)))
    return tuple(marks)


def _spread(record: RunRecord) -> tuple[CommittedCheckpoint, ...]:
    stride = max(1, len(record.checkpoints) // MOST_MARKS)
    return tuple(
        each for index, each in enumerate(record.checkpoints) if each.restored or each.final or index % stride == 0
    )


def _checkpoint(step: int, digest: str) -> str:
    return f"checkpoint at step {step}, {short(digest)}"


def _failure(index: int, each: Restart) -> str:
    return f"attempt {index + 1} ended at step {each.last_step}: {ending(each)}"
