"""Who watches a run is told that its store takes nothing any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from argosy.steps.record.unwritten import Unwritten, last_word, log_of_supervisor
from argosy.steps.record.wording import duration
from argosy.workflows.cli.store_away import SILENT_SECONDS


class UnwrittenWatch:
    """Says it to whoever watches, now and then while it lasts, and when it is over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: Unwritten | None = None
        self._told = 0.0

    def look(self, state: Mapping[str, Any], *, away: bool) -> None:
        """Called again and again; ``away``: it does not answer at all, which is said in other words."""
        if away:
            return
        lines = log_of_supervisor(state)
        if not lines:  # that it ended is told, and the next one begins anew
            self._last = None
            return
        found, before = last_word(lines), self._last
        self._last = found
        now = time.monotonic()
        if found is not None and (before is None or now - self._told > SILENT_SECONDS):
            self._told = now
            self._say(f"warning: {found.sentence(time.time())}; what happens is told when it can be written")
        elif before is not None and found is None:
            self._say(f"the event log can be written again after {duration(max(0.0, time.time() - before.since))}")
