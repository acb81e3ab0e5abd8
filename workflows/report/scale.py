"""From values to percent of a chart's width or height, and round ticks for its axis.

Charts are drawn in percent, so that they fill any width while text and strokes keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TIME_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
DAY = 86400
_MOST_TIMES = 8


@dataclass(frozen=True)
class Scale:
    """Maps ``low..high`` to ``0..100`` percent; an empty range maps to 0."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Position in percent, kept inside the chart."""
        if self.high <= self.low:
            return 0.0
        return round(min(100.0, max(0.0, (value - self.low) / (self.high - self.low) * 100)), 3)


@dataclass(frozen=True)
class Tick:
    """A line of the axis."""

    at: float
    """percent"""
    label: str


def time_ticks(scale: Scale) -> tuple[Tick, ...]:
    """Ticks at round seconds, minutes or hours from the scale's start."""
    span = scale.high - scale.low
    if span <= 0:
        return (Tick(0.0, "0 s"),)
    step = next((each for each in TIME_STEPS if span / each <= _MOST_TIMES), math.ceil(span / _MOST_TIMES / DAY) * DAY)
    return tuple(
        Tick(scale.at(scale.low + index * step), _time_label(index * step)) for index in range(int(span / step) + 1)
    )


def _time_label(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"


def round_ticks(scale: Scale, most: int) -> tuple[Tick, ...]:
    """Ticks at 1, 2 or 5 times a power of ten."""
    span = scale.high - scale.low
    if span <= 0:
        return (Tick(0.0, f"{scale.low:g}"),)
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if span / (power * factor) <= most)
    first = math.ceil(scale.low / step - 1e-9)
    last = math.floor(scale.high / step + 1e-9)
    return tuple(Tick(scale.at(index * step), f"{round(index * step, 12):g}") for index in range(first, last + 1))


def thin(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most about ``most`` points: of each stretch its first, lowest, highest and last, so that spikes stay."""
    if len(points) <= most:
        return list(points)
    width = math.ceil(len(points) / max(1, most // 4))
    kept: list[tuple[float, float]] = []
    for start in range(0, len(points), width):
        stretch = points[start : start + width]
        indices = range(len(stretch))
        lowest = min(indices, key=lambda index: stretch[index][1])
        highest = max(indices, key=lambda index: stretch[index][1])
        kept += [stretch[index] for index in sorted({0, lowest, highest, len(stretch) - 1})]
    return kept
