"""Which step belongs to the files that a script saved? It tells the one and writes the other when it likes."""

from __future__ import annotations

from collections import deque

from argosy.steps.launch.units import Unit
from argosy.steps.launch.whole_files import newest_change

_KEPT = 10_000


class StepClock:
    """The steps that rank 0 told, and when."""

    def __init__(self, resume_step: int, *, tells_steps: bool = False) -> None:
        """``resume_step``: of what was restored, 0 for nothing; ``tells_steps``: the script told some in an earlier
        restart.
        """
        self.last = resume_step
        """Step of the last commit, or of what was restored."""
        self._tells = tells_steps
        self._may_be_restored = resume_step > 0
        """Nothing was committed since the restore: what lies there next may be the same state, saved again."""
        self._told: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        self._furthest = resume_step
        self._stride = 0

    def tell(self, step: int, when: float) -> None:
        """Rank 0 finished ``step``: what it saves later holds at least that."""
        self._stride = max(self._stride, step - self._furthest)
        self._furthest = max(self._furthest, step)
        self._told.append((when, step))

    def committed(self, step: int) -> None:
        """A checkpoint was committed as that of ``step``."""
        self.last, self._may_be_restored = step, False

    def label(self, unit: Unit, *, again: bool, final: bool) -> int:
        """The step in the unit's name when it can be the script's count of steps; else the last step told before the
        files changed; for a script that tells none, one more than the last commit.

        A commit of a higher step renews the budget for restarts, so a script that saves the restored state again and
        then crashes must not have one: before a step is told, the label stays for a script that told steps in an
        earlier restart, and for the first save after a restore of any other. A script that never tells steps goes up
        from its second save on.

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
        return self.last if again or self._tells or self._may_be_restored else self.last + 1

    def _plausible(self, named: int, told: int | None) -> bool:
        """Names may count tokens or samples: a step is not further from the last one told than steps told lie apart.

        Words of a rank arrive late on a busy machine: what was told since counts as told.
        """
        if told is None:
            return named >= self.last
        return told <= named <= max(told + self._stride, self._furthest)
