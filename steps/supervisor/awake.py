"""The time in which a supervisor could look and listen."""

from __future__ import annotations

import time

SHARE = 0.25
"""Of the silence that loses a node, what a sleep counts for: who could not be heard has the rest to be heard in."""


class AwakeClock:
    """Monotonic seconds without what the process slept through: a laptop that was closed, a SIGSTOP, a frozen machine.

    Ask it often: what lies between two calls counts for ``longest`` at most.
    """

    def __init__(self, longest: float) -> None:
        """``longest`` in seconds."""
        self._longest = longest
        self._last = time.monotonic()
        self._slept = 0.0

    def now(self) -> float:
        """Seconds, comparable with each other only."""
        now = time.monotonic()
        self._slept += max(0.0, now - self._last - self._longest)
        self._last = now
        return now - self._slept
