"""Whether the loss that rank 0 tells is still a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.trouble import Trouble


class Losses:
    """One restart's. Only a loss that *became* NaN or infinite counts: some scripts print one where there is none."""

    def __init__(self, most: int) -> None:
        """``most`` in a row are trouble; 0: never, and nothing is remembered."""
        self._most = most
        self._last: tuple[float, int, float] | None = None
        """The last number, its step, and when it was told."""
        self._wrong: list[tuple[int, float]] = []
        """(step, what it was) since then."""

    def feed(self, record: Mapping[str, Any]) -> None:
        """A progress record of any rank."""
        loss, step = record.get("loss"), int(record.get("step", 0))
        if not self._most or loss is None or int(record.get("rank", 0)) != 0:
            return
        if math.isfinite(loss):
            self._last, self._wrong = (loss, step, float(record.get("time", 0.0))), []
        elif self._last is not None and all(step != known for known, _ in self._wrong):
            self._wrong.append((step, loss))

    def trouble(self) -> Trouble | None:
        """``step`` and ``time`` are those of the last number: what was saved since then may be spoiled."""
        if self._last is None or len(self._wrong) < self._most:
            return None
        loss, step, time = self._last
        first, wrong = self._wrong[0]
        quote = f"the loss is {wrong:g} since step {first}; at step {step} it was {loss:g}"
        return Trouble(cause=Cause.NUMERICS_NAN, quote=quote, step=step, time=time)
