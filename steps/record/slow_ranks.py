"""Ranks that the others waited for in step after step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.record.reading import number, text, whole
from argosy.steps.record.wording import duration
from argosy.steps.runlog import Event

OF_A_SLOW_RANK = "times as long as the others in a step"
"""In the quote of a start that was ended for one."""


@dataclass(frozen=True)
class SlowRank:
    """``score`` in deviations of the others; seconds are its own work in a step, and the others'."""

    rank: int
    node: str
    attempt: int
    restart: int
    step: int
    score: float
    seconds: float
    others: float

    @property
    def sentence(self) -> str:
        """``rank 3 on node-1 works 1.5 times as long as the others in a step (150 ms, the others 100 ms) ...``."""
        where = f" on {self.node}" if self.node else ""
        works = "far longer than the others in a step"
        if self.others:
            works = f"{self.seconds / self.others:.1f} {OF_A_SLOW_RANK}"
        told = f"{duration(self.seconds)}, the others {duration(self.others)}; score {self.score:.1f}"
        return f"rank {self.rank}{where} works {works} ({told}), seen at step {self.step}"


def slow_rank_of(event: Event) -> SlowRank:
    """What a ``slow_rank`` event says."""
    fields = event.fields
    rank, attempt, restart, step = (whole(fields, name) or 0 for name in ("rank", "attempt", "restart", "step"))
    score, seconds, others = (number(fields, name) or 0.0 for name in ("score", "seconds", "others"))
    return SlowRank(rank, text(fields, "node"), attempt, restart, step, score, seconds, others)


def slow_ranks_of(events: Sequence[Event]) -> tuple[SlowRank, ...]:
    """All that were named, in order."""
    return tuple(slow_rank_of(event) for event in events if event.kind == "slow_rank")
