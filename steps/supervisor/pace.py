"""How long a run's pauses between steps are, saves and evaluations included, and which one they do not explain."""

from __future__ import annotations

import math

FLOOR_SECONDS = 120.0
"""Nothing shorter is called a stall, unless the run says otherwise."""
TIMES = 10.0
"""So many times the longest pause so far is one. A factor of the longest, for pauses have heavy tails: of a high
quantile a run of a day passes every multiple some time."""
LEARNED = 20
"""Pauses that must have been seen."""


class Pace:
    """Of one run, over its restarts."""

    def __init__(self, floor: float = FLOOR_SECONDS) -> None:
        """``floor``: seconds; nothing shorter is a stall."""
        self._floor = floor
        self.longest = 0.0
        """Seconds."""
        self._seen = 0

    def paused(self, seconds: float) -> None:
        """Something moved again after ``seconds``; also of an alarm, which may have been a false one."""
        self.longest = max(self.longest, seconds)
        self._seen += 1

    @property
    def limit(self) -> float:
        """Seconds after which a pause is a stall; infinite before enough has been seen."""
        return max(self._floor, TIMES * self.longest) if self._seen >= LEARNED else math.inf
