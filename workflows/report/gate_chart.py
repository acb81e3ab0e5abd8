"""The gate as a number line: the value, the floor, and what is promoted now."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.wording import figure
from argosy.workflows.report.scale import Scale

MARGIN = 0.18


@dataclass(frozen=True)
class Flag:
    """A value on the line; ``kind`` is ``value``, ``floor`` or ``baseline``; ``anchor`` keeps its text inside."""

    x: float
    kind: str
    label: str
    anchor: str


def gate_flags(record: RunRecord) -> tuple[Flag, ...]:
    """The flags, the evaluated value last (on top); empty without an evaluation and something to compare it with."""
    if record.evaluation is None or record.gate is None:
        return ()
    named = [("floor", record.gate.floor), ("baseline", record.gate.baseline)]
    values = [(kind, value) for kind, value in named if value is not None]
    if not values:
        return ()
    values.append(("value", record.evaluation.value))
    numbers = [value for _, value in values]
    room = (max(numbers) - min(numbers)) * MARGIN or abs(numbers[0]) * MARGIN or 1.0
    scale = Scale(min(numbers) - room, max(numbers) + room)
    return tuple(_flag(scale, kind, value) for kind, value in values)


def _flag(scale: Scale, kind: str, value: float) -> Flag:
    x = scale.at(value)
    name = {"value": "this run", "floor": "floor", "baseline": "promoted now"}[kind]
    return Flag(x, kind, f"{name} {figure(value)}", "start" if x < 20 else "end" if x > 80 else "middle")
