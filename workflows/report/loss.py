"""The loss over steps: every attempt, with the steps that were done again visible as such."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.steps.contract.causes import Cause
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.goodput import kept_until
from argosy.steps.record.story import ending, fate_of_lost
from argosy.steps.record.wording import figure
from argosy.workflows.report.scale import Scale, Tick, round_ticks, thin

MOST_POINTS = 1600
MOST_MARKS = 60
HEADROOM = 0.06
"""Share of the range left free above and below the curve."""


@dataclass(frozen=True)
class Curve:
    """A polyline in percent of the chart, y downwards; ``kind`` is ``kept`` or ``lost``."""

    points: str
    kind: str


@dataclass(frozen=True)
class Replay:
    """The steps between a restored checkpoint and the failure before it."""

    x: float
    width: float
    label: str
    tooltip: str


@dataclass(frozen=True)
class LossChart:
    """Curves over a grid; ``checkpoints`` are positions in percent on the x axis."""

    curves: tuple[Curve, ...]
    replays: tuple[Replay, ...]
    checkpoints: tuple[tuple[float, str], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    first: str
    last: str


def loss_chart(record: RunRecord) -> LossChart | None:
    """The chart, or None when fewer than two losses were reported."""
    losses = [(point.step, point.loss) for each in record.restarts for point in each.points if point.loss is not None]
    if len(losses) < 2:
        return None
    values = [loss for _, loss in losses]
    room = (max(values) - min(values)) * HEADROOM or abs(values[0]) * HEADROOM or 1.0
    y = Scale(min(values) - room, max(values) + room)
    x = Scale(0, max(record.last_step, max(step for step, _ in losses)))
    return LossChart(
        curves=_curves(record, x, y),
        replays=_replays(record, x),
        checkpoints=_checkpoints(record, x),
        x_ticks=round_ticks(x, 8),
        y_ticks=tuple(Tick(100 - tick.at, tick.label) for tick in round_ticks(y, 5)),
        first=figure(losses[0][1]),
        last="nan" if record.restarts[-1].cause == Cause.NUMERICS_NAN else figure(_latest(record)),
    )


def _latest(record: RunRecord) -> float:
    return [p.loss for each in record.restarts for p in each.points if p.loss is not None][-1]


def _curves(record: RunRecord, x: Scale, y: Scale) -> tuple[Curve, ...]:
    """Lost parts first: what was kept is drawn over them."""
    lost, kept = [], []
    most = max(40, MOST_POINTS // max(1, len(record.restarts)))
    for index, each in enumerate(record.restarts):
        turn = kept_until(record.restarts, index)
        points = [(x.at(point.step), 100 - y.at(point.loss)) for point in each.points if point.loss is not None]
        steps = [point.step for point in each.points if point.loss is not None]
        split = sum(1 for step in steps if step <= turn)
        kept.append(_curve(points[:split], "kept", most))
        lost.append(_curve(points[max(0, split - 1) :] if split < len(points) else [], "lost", most))
    return tuple(curve for curve in [*lost, *kept] if curve.points)


def _curve(points: list[tuple[float, float]], kind: str, most: int) -> Curve:
    if len(points) == 1:
        points = [points[0], (points[0][0] + 0.1, points[0][1])]
    return Curve(" ".join(f"{left:.2f},{top:.2f}" for left, top in thin(points, most)), kind)


def _replays(record: RunRecord, x: Scale) -> tuple[Replay, ...]:
    found = []
    for index, each in enumerate(record.restarts):
        if not each.failed and index + 1 == len(record.restarts):
            continue
        kept = min(kept_until(record.restarts, index), each.last_step)
        left, right = x.at(kept), x.at(each.last_step)
        text = f"attempt {index + 1} ended at step {each.last_step} ({ending(each)})"
        if fate := fate_of_lost(record, index):
            text += f"; steps {kept + 1} to {each.last_step}: {fate}"
        found.append(Replay(left, round(max(0.1, right - left), 3), str(index + 1), text))
    return tuple(found[:MOST_MARKS])


def _checkpoints(record: RunRecord, x: Scale) -> tuple[tuple[float, str], ...]:
    stride = max(1, len(record.checkpoints) // MOST_MARKS)
    return tuple((x.at(each.step), f"checkpoint at step {each.step}") for each in record.checkpoints[::stride])
