"""How long this rank worked in a step before it met the others: until its first collective, by torch's flight recorder.

In a gang that meets in every step all ranks' steps last equally long, and only this tells who is waited for. Nothing is
added to a collective: the recorder writes anyway, and it is read now and then, by all ranks at the same moments of the
clock, so that they tell of the same steps. Standard library only; a script without torch, or with a torch that has no
recorder, tells nothing here.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise

LOOK_SECONDS = 30.0
"""A look at a full recorder (2,000 collectives) takes 70 ms: two in a thousand of the time."""
MOST_STEPS = 100
"""Of one look; a line of the progress pipe holds no more."""
_RECORDER = "torch._C._distributed_c10d"
_DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
_NANO = 1e-9


class Arrivals:
    """Of this process; told of each step that is done."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, int]] = []
        """(step, when it was done, nanoseconds since 1970) since the last look."""
        self._look = 0

    def done(self, step: int) -> list[tuple[int, float, float]]:
        """Now and then (step, seconds that this rank worked in it, seconds that it lasted) of some steps; else none."""
        now = time.time_ns()
        self._steps.append((step, now))
        turn = int(now * _NANO / LOOK_SECONDS)
        if turn == self._look:
            del self._steps[: -MOST_STEPS - 1]
            return []
        first, self._look = not self._look, turn
        steps, self._steps = self._steps, self._steps[-1:]
        return [] if first or (dump := _recorder()) is None else worked(steps, _arrived(dump))


def worked(steps: list[tuple[int, int]], arrivals: list[int]) -> list[tuple[int, float, float]]:
    """``steps`` (number, when done), ``arrivals`` when each collective was come to; both in order, nanoseconds."""
    found = []
    for (before, began), (step, done) in pairwise(steps):
        at = bisect_right(arrivals, began)
        if step == before + 1 and 0 < at < len(arrivals) and arrivals[at] <= done:
            found.append((step, round((arrivals[at] - began) * _NANO, 6), round((done - began) * _NANO, 6)))
    return found[-MOST_STEPS:]


def _recorder() -> Callable[[bool, bool], str | bytes] | None:
    module = sys.modules.get(_RECORDER)
    return next((found for name in _DUMPS if (found := getattr(module, name, None)) is not None), None)


def _arrived(dump: Callable[[bool, bool], str | bytes]) -> list[int]:
    try:
        entries = json.loads(dump(True, False)).get("entries", [])
        return sorted(int(entry["time_created_ns"]) for entry in entries if not entry.get("is_p2p"))
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        return []  # another torch's recorder
