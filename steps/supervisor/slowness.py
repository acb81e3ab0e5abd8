"""Which rank the others wait for while all make steps: by what each works in a step, without waiting for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from argosy.steps.record.slow_ranks import OF_A_SLOW_RANK

WINDOW_STEPS = 30
"""Steps that every rank told, at least, before a window is looked at."""
WINDOW_SECONDS = 20.0
"""And so long it lasts at least: what a machine does for a moment is no slow rank."""
WINDOWS = 3
"""So many in a row name a rank."""
SLOWER = 0.8
"""In so many of a window's steps it took longer than the others' median. Of equal ranks, however heavy the tails of
their steps are, one has such a window with a chance of 1 in 1,400 (binomial, 24 of 30), and three in a row with 1 in
10^9.
"""
TIMES = 1.25
"""As many times as long as the others, at least."""
SCORE = 3.0
"""How far it lies above the others, in deviations of theirs (1.4826 MAD, and a twentieth of their median)."""
SHARE = 0.1
"""Of the step, at least, the others wait for it: what is shorter costs nobody anything."""
MOST = 0.25
"""Of the ranks: where more take longer, their work differs, as that of a pipeline's stages, and none is slow."""
_TOLD_BY_NOT_ALL = 512
"""Steps that are kept until every rank has told them."""


@dataclass(frozen=True)
class SlowRank:
    """``score`` in deviations, seconds are medians: of its own work in a step, and of the others'."""

    rank: int
    step: int
    score: float
    seconds: float
    others: float

    @property
    def text(self) -> str:
        """``rank 3 works 1.5 times as long as the others in a step (0.150 s, the others 0.100 s; score 6.2)``."""
        times = self.seconds / self.others if self.others else float("inf")
        told = f"{self.seconds:.3f} s, the others {self.others:.3f} s; score {self.score:.1f}"
        return f"rank {self.rank} works {times:.1f} {OF_A_SLOW_RANK} ({told})"


@dataclass
class _Window:
    began: float
    steps: int = 0
    worked: dict[int, list[float]] = field(default_factory=dict)
    above: dict[int, int] = field(default_factory=dict)
    lasted: list[float] = field(default_factory=list)

    def add(self, told: Mapping[int, tuple[float, float]]) -> None:
        self.steps += 1
        middle = sorted(seconds for seconds, _ in told.values())
        for rank, (seconds, _) in told.items():
            self.worked.setdefault(rank, []).append(seconds)
            self.above[rank] = self.above.get(rank, 0) + (seconds > _median_without(middle, seconds))
        self.lasted.append(max(lasted for _, lasted in told.values()))

    def slow(self, step: int) -> list[SlowRank]:
        medians = {rank: median(told) for rank, told in self.worked.items()}
        found = []
        for rank, seconds in medians.items():
            if self.above[rank] < SLOWER * self.steps:
                continue
            others = [each for other, each in medians.items() if other != rank]
            middle = median(others)
            spread = 1.4826 * median(abs(each - middle) for each in others) + middle / 20
            score = (seconds - middle) / spread if spread else 0.0
            costs = (seconds - middle) >= SHARE * median(self.lasted)
            if seconds >= TIMES * middle and score >= SCORE and costs:
                found.append(SlowRank(rank, step, round(score, 1), round(seconds, 4), round(middle, 4)))
        return found if len(found) <= max(1, MOST * len(medians)) else []


class Slowness:
    """Of one restart of ``world`` ranks.

    What a rank tells of its own work counts (``worked``); where none tells it, its steps' whole time does, which in a
    gang that meets in every step is the same for all, and then names nobody.
    """

    def __init__(self, world: int) -> None:
        self._world = world
        self._whole: dict[int, tuple[int, float]] = {}
        """Rank -> the last step that it told, and when by its own clock."""
        self._owned = False
        self._steps: dict[int, dict[int, tuple[float, float]]] = {}
        self._window: _Window | None = None
        self._in_a_row: dict[int, int] = {}
        self._named: set[int] = set()

    def step(self, record: Mapping[str, Any], now: float) -> list[SlowRank]:
        """A progress record of any rank; who is slow, told when it is found."""
        rank, step = int(record.get("rank", 0)), int(record.get("step", 0))
        when = float(record.get("time", 0.0))
        before, at = self._whole.get(rank, (0, 0.0))
        self._whole[rank] = (step, when)
        lasted = when - at
        if step != before + 1 or not before or not when or lasted <= 0:
            return []
        own = record.get("own")
        return self.worked(rank, [(step, float(own), lasted)], now) if own is not None else (
            [] if self._owned else self._add(rank, [(step, lasted, lasted)], now)
        )  # fmt: skip

    def worked(self, rank: int, told: Iterable[Iterable[float]], now: float) -> list[SlowRank]:
        """``told``: (step, seconds of the rank's own work in it, seconds that it lasted)."""
        if not self._owned:
            self._owned, self._window = True, None
            self._steps.clear()
            self._in_a_row.clear()
        return self._add(rank, told, now)

    def _add(self, rank: int, told: Iterable[Iterable[float]], now: float) -> list[SlowRank]:
        found: list[SlowRank] = []
        if self._world < 2:
            return found
        for number, seconds, lasted in told:
            step = int(number)
            known = self._steps.setdefault(step, {})
            known[rank] = (max(0.0, float(seconds)), float(lasted))
            if len(known) == self._world:
                found += self._whole_gang(step, self._steps.pop(step), now)
        while len(self._steps) > _TOLD_BY_NOT_ALL:
            del self._steps[next(iter(self._steps))]
        return found

    def _whole_gang(self, step: int, told: Mapping[int, tuple[float, float]], now: float) -> list[SlowRank]:
        if self._window is None:
            self._window = _Window(now)
        self._window.add(told)
        if self._window.steps < WINDOW_STEPS or now - self._window.began < WINDOW_SECONDS:
            return []
        slow = self._window.slow(step)
        self._window = None
        self._in_a_row = {each.rank: self._in_a_row.get(each.rank, 0) + 1 for each in slow}
        self._named &= set(self._in_a_row)  # who was slow and is no longer may be named again
        new = [each for each in slow if self._in_a_row[each.rank] >= WINDOWS and each.rank not in self._named]
        self._named |= {each.rank for each in new}
        return new


def _median_without(ordered: list[float], one: float) -> float:
    """The median of what is left of ``ordered`` without ``one`` of its values."""
    count = len(ordered) - 1
    at = ordered.index(one) if count < 3 else -1
    if at >= 0:
        return median(ordered[:at] + ordered[at + 1 :])
    # Of many the whole median is as good: it differs by less than a neighbour's distance.
    return ordered[count // 2]
