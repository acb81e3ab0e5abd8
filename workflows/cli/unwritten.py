"""That a store takes nothing any more: the event log in it cannot say so, the log of the supervisor's pod does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from argosy.steps.record.wording import duration
from argosy.steps.runlog import KEPT, UNWRITTEN, WRITTEN
from argosy.steps.store.base import UNSERVED
from argosy.steps.store.opening import SAVE_SECONDS

_TAIL = 64 << 10
_WORD = re.compile(f"{UNWRITTEN}(?P<since>[-0-9T:]+Z): (?P<cause>[a-z0-9_]+): (?P<why>.+){KEPT}")


class Unwritten(NamedTuple):
    """Since when (seconds since 1970), the cause's id, and why."""

    since: float
    cause: str
    why: str

    def sentence(self, now: float) -> str:
        """What it means for the training: what a store refuses for good is not asked for again."""
        waits = f". Training goes on; a save waits, {duration(SAVE_SECONDS)} at most, and the next save for that one"
        told = f"the store has taken nothing for {duration(max(0.0, now - self.since))}: {self.why}"
        return told + waits * (self.cause in UNSERVED)


def unwritten(state: Mapping[str, Any]) -> Unwritten | None:
    """As the supervisor that runs said last; None: it can write. ``state``: of an engine of this machine."""
    return _read(_last_word(_log(state)))


def _log(state: Mapping[str, Any]) -> str:
    """Of the supervisor that runs, if one does."""
    nodes = state.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        if node.get("templateName") == "train" and node.get("phase") == "Running" and node.get("log"):
            return str(node["log"])
    return ""


def _last_word(path: str) -> str:
    try:
        with open(path, "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.startswith((UNWRITTEN, WRITTEN))), "")


def _read(word: str) -> Unwritten | None:
    found = _WORD.fullmatch(word)
    return found and Unwritten(datetime.fromisoformat(found["since"]).timestamp(), found["cause"], found["why"])


class UnwrittenWatch:
    """Says it once to whoever watches, and when it is over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told = ""
        """The log of the supervisor of which it was said."""

    def look(self, state: Mapping[str, Any], *, away: bool) -> None:
        """Called several times a second; ``away``: it does not answer at all, which is said in other words."""
        word = "" if away else _last_word(log := _log(state))
        if word.startswith(WRITTEN) and self._told == log:
            self._say("the event log can be written again")
            self._told = ""
        elif (found := _read(word)) is not None and self._told != log:
            self._say(f"warning: {found.sentence(time.time())}; what happens is told when it can be written")
            self._told = log
