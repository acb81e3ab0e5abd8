"""That a store takes nothing any more: the event log in it cannot say so, the log of the supervisor's pod does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from argosy.steps.record.wording import duration
from argosy.steps.runlog import KEPT, LOG_UNWRITTEN, WRITTEN
from argosy.steps.store.base import UNSERVED
from argosy.steps.store.opening import SAVE_SECONDS
from argosy.workflows.cli.store_away import SILENT_SECONDS

_TAIL = 64 << 10
_WORD = re.compile(f"{LOG_UNWRITTEN}(?P<since>[-0-9T:]+Z): (?P<cause>[a-z0-9_]+): (?P<why>.+){KEPT}")


class Unwritten(NamedTuple):
    """Since when (seconds since 1970), and why."""

    since: float
    cause: str
    why: str

    def sentence(self, now: float) -> str:
        """What it means for the training."""
        follows = f"Training goes on; a save waits, {duration(SAVE_SECONDS)} at most, and the next save for that one"
        if self.cause not in UNSERVED:
            follows = "No save can be stored, and the training ends of it unless this is mended"
        return f"the store has taken nothing for {duration(max(0.0, now - self.since))}: {self.why}. {follows}"


def unwritten(state: Mapping[str, Any]) -> Unwritten | None:
    """As the supervisor that runs said last; None: it can write. ``state``: of an engine of this machine."""
    log = _log_of_supervisor(state)
    return _last_word(log) if log is not None else None


def _log_of_supervisor(state: Mapping[str, Any]) -> Path | None:
    nodes = state.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        if node.get("templateName") == "train" and node.get("phase") == "Running" and node.get("log"):
            return Path(node["log"])
    return None


def _last_word(path: Path) -> Unwritten | None:
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError:
        return None
    last = next((line for line in reversed(lines) if line.startswith((LOG_UNWRITTEN, WRITTEN))), "")
    found = _WORD.fullmatch(last)
    return Unwritten(datetime.fromisoformat(found["since"]).timestamp(), *found.group(2, 3)) if found else None


class UnwrittenWatch:
    """Says it to whoever watches, now and then while it lasts, and when it is over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: Unwritten | None = None
        self._told = 0.0

    def look(self, state: Mapping[str, Any], *, away: bool) -> None:
        """Called several times a second; ``away``: it does not answer at all, which is said in other words."""
        if away:
            return
        log = _log_of_supervisor(state)
        if log is None:  # that it ended is told, and the next one begins anew
            self._last = None
            return
        found, before = _last_word(log), self._last
        self._last = found
        now = time.monotonic()
        if found is not None and (before is None or now - self._told > SILENT_SECONDS):
            self._told = now
            self._say(f"warning: {found.sentence(time.time())}; what happens is told when it can be written")
        elif before is not None and found is None:
            self._say(f"the event log can be written again after {duration(max(0.0, time.time() - before.since))}")
