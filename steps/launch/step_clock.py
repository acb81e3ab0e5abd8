"""Which step belongs to the files that a script saved? It tells the one and writes the other when it likes."""

from __future__ import annotations

from collections import deque

from argosy.steps.launch.units import Unit
from argosy.steps.launch.whole_files import newest_change

_KEPT = 10_000


class StepClock:
    """The steps that rank 0 told, and when."""

    def __init__(self, resume_step: int) -> None:
        self.last = resume_step
        """Step of the last commit, or of what was restored."""
        self._told: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        self._furthest = resume_step
        self._stride = 0

    def tell(self, step: int, when: float) -> None:
        """Rank 0 finished ``step``: what it saves later holds at least that."""
        self._stride = max(self._stride, step - self._furthest)
        self._furthest = max(self._furthest, step)
        self._told.append((when, step))

    def label(self, unit: Unit, *, again: bool, final: bool) -> int:
        """The step in the unit's name when it can be the script's count of steps; else the last step told before the
        files changed; for a script that tells none, one more than the last commit.

        ``again``: the same files were committed before. A script may save before it tells the step, so at the end one
        later step belongs to the files as well. Steps never go back.
        """
        changed = newest_change(unit.files)
        told = [step for when, step in list(self._told) if when <= changed]
        if unit.step is not None and self._plausible(unit.step, told[-1] if told else None):
            return max(unit.step, self.last)
        later = [step for when, step in list(self._told) if when > changed]
        if final and len(later) == 1:
            told = later
        if told:
            return max(told[-1], self.last)
        return self.last if again else self.last + 1

    def _plausible(self, named: int, told: int | None) -> bool:
        """Names may count tokens or samples: a step is not further from the last one told than steps told lie apart."""
        if told is None:
            return named >= self.last
        return told <= named <= told + self._stride
