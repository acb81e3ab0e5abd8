"""``every = "auto"``: how many steps lie between saves, from what a save costs and how often a gang fails.

Young's first-order optimum (CACM 17(9), 1974; Daly, FGCS 22(3), 2006, gives the same for costs far below the mean time
between failures): save every ``sqrt(2 * cost * mean time between failures)`` seconds. The cost is what training stands
still for, since the rest happens in the background; but never save more often than the background can store.
"""

from __future__ import annotations

import math
import os

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError

FIRST_STEPS = 10
"""The first two saves come after so many steps each: nothing is measured yet, and a save after a short while shows a
broken store before a day's work depends on it."""
NODE_HOURS = 1000.0
"""Assumed mean time between failures of one node, in hours. Meta's Llama 3 report (2407.21783, table 5) has 419
interruptions in 54 days of 2,048 nodes, about 6,300 node hours each; spot capacity and smaller clusters do worse."""
_LEAST_COST = 1e-3


class Interval:
    """Decides on rank 0; the decision travels with the outcome of a save, see :class:`Schedule`."""

    def __init__(self, failure_hours: float) -> None:
        """``failure_hours``: mean time between failures of the whole gang."""
        self._failure_seconds = failure_hours * 3600

    def decide(self, stall: float, background: float, step_seconds: float) -> int:
        """Steps between saves; ``stall``: seconds the slowest rank stood still, ``background``: from the call of save
        to the commit, ``step_seconds``: of one step. 0 where no step was measured."""
        if step_seconds <= 0:
            return 0
        best = math.sqrt(2 * max(stall, _LEAST_COST) * self._failure_seconds)
        return max(1, math.ceil(max(best, background) / step_seconds))


class Schedule:
    """When the next save is due; the same on every rank, without asking anybody.

    The decision that came with the outcome of save ``n`` is used from save ``n + 1`` on: each rank has that outcome
    when its save ``n + 1`` returns, be it early or late, since that save waits for it. A rank that used it as soon as
    it heard of it would be due at another step than one that heard of it later.
    """

    def __init__(self, first_step: int) -> None:
        """``first_step``: the step that was restored, 0 for none."""
        self._steps = FIRST_STEPS
        self._saved = first_step

    def due(self, step: int) -> bool:
        """Whether a save is wanted after ``step``."""
        return step >= self._saved + self._steps

    def saved(self, step: int, decided: int) -> str:
        """``step`` is saved, ``decided`` came with the save before (0: nothing); what to print, "" for nothing."""
        before, self._saved = self._steps, step
        if decided > 0:
            self._steps = decided
        if abs(self._steps - before) <= 0.2 * before:
            return ""
        return f"a checkpoint every {self._steps} steps from step {step} on (before: {before})"


def failure_hours(nnodes: int) -> float:
    """Mean time between failures of the gang, in hours: as given by the environment, else assumed.

    Raises:
        InputError: what is given is no positive number.
    """
    text = os.environ.get(env.FAILURE_HOURS, "")
    try:
        hours = float(text) if text else NODE_HOURS / max(1, nnodes)
    except ValueError:
        hours = 0.0
    if not 0 < hours < math.inf:
        raise InputError(f"{env.FAILURE_HOURS} = {text!r}: a number of hours above 0 is needed")
    return hours
