"""That a store takes nothing any more: the event log in it cannot say so, the log of the supervisor's pod does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.wording import duration
from argosy.steps.runlog import KEPT, LOG_UNWRITTEN, WRITTEN
from argosy.steps.store.base import UNSERVED
from argosy.steps.store.opening import SAVE_SECONDS

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
    """As the supervisor that runs said last; None: it can write, as far as its log is known."""
    return last_word(log_of_supervisor(state))


def with_unwritten(record: RunRecord, state: Mapping[str, Any]) -> RunRecord:
    """The record, with what its supervisor says of the store; of one that is gone its last word says nothing of now."""
    refused = None if record.interrupted else unwritten(state)
    return replace(record, unwritten="" if refused is None else refused.sentence(time.time()))


def log_of_supervisor(state: Mapping[str, Any]) -> list[str]:
    """The last lines of the one that runs; none where it cannot be read, or none runs."""
    nodes = state.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        runs = node.get("templateName") == "train" and node.get("phase") == "Running"
        if runs and (lines := node.get("written") or _tail(node.get("log") or "")):
            return [*lines]
    return []


def _tail(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            return log.read().decode(errors="replace").split("\n")
    except OSError:
        return []


def last_word(lines: list[str]) -> Unwritten | None:
    """What a supervisor's log says last of its store; None: nothing, or that it can write."""
    last = next((line for line in reversed(lines) if line.startswith((LOG_UNWRITTEN, WRITTEN))), "")
    found = _WORD.fullmatch(last)
    return Unwritten(datetime.fromisoformat(found["since"]).timestamp(), *found.group(2, 3)) if found else None
