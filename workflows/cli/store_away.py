"""What is said while the store of a run that is watched does not answer: no step of the run can say it there."""

from __future__ import annotations

import time
from collections.abc import Callable

from argosy.steps.contract.causes import Cause
from argosy.steps.record.wording import duration
from argosy.steps.store.opening import POD_SECONDS, SAVE_SECONDS

SILENT_SECONDS = 300.0
"""Between two words that it is still away."""


class StoreAway:
    """Since when it is away, what happens meanwhile, and when it is back."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.since = self._told = 0.0
        """By the clock of this process; 0.0: it answers."""

    def lost(self, began: float) -> None:
        """It did not answer; ``began``: when it was asked (``time.monotonic``)."""
        now = time.monotonic()
        if not self.since:
            self.since = self._told = began
            clock, code = (
                time.strftime("%H:%M:%S", time.localtime(time.time() - (now - began))),
                int(Cause.STORE_UNAVAILABLE.exit_code),
            )
            self._say(
                f"the store does not answer since {clock}: what happens is told when it is back. Training goes on; a "
                f"save waits for it, {duration(SAVE_SECONDS)} at most, and the next save for that one. A step that "
                f"needs it asks for {duration(POD_SECONDS)}, then it fails with exit code {code} and is tried again, "
                "train as often as retry.supervisor_limit says"
            )
        elif now - self._told > SILENT_SECONDS:
            self._told = now
            self._say(f"the store has not answered for {duration(now - self.since)}")

    def back(self) -> None:
        """It answered."""
        if self.since:
            self._say(f"the store is back after {duration(time.monotonic() - self.since)}")
            self.since = 0.0
