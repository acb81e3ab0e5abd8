"""What the rank or step that ended a run wrote last: a traceback whole, else its last lines."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.record.story import failed_step
from argosy.workflows.cli.logs import records
from argosy.workflows.report.page import LastWords

if TYPE_CHECKING:
    from argosy.steps.record.facts import RunRecord
    from argosy.workflows.cli.finding import Run

MOST_LINES = 200
"""Looked at: a traceback through a library's layers is long, and so is a chain of them."""
FEW_LINES = 15
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = re.compile(r"(During handling of the above|The above exception was the direct cause)")


def last_words(run: Run, record: RunRecord) -> LastWords | None:
    """Those of a failed run; None when nothing is kept, or for one that did not fail."""
    if record.phase not in ("Failed", "Error"):
        return None
    failed = next((each for each in reversed(record.restarts) if each.failed), None)
    if failed is not None and failed.rank is not None and record.train_cause:
        lines = (str(each["text"]) for each in records(run, False, failed.rank, None, None))
        return _words(f"rank {failed.rank}", lines)
    if (step := failed_step(record)) is not None and step.log:
        try:
            with Path(step.log).open(errors="replace") as log:
                return _words(f"step {step.name}", (line.rstrip("\r\n") for line in log))
        except OSError:
            return None
    return None


def told(words: LastWords | None) -> Iterator[str]:
    """Lines to print below the status of the run."""
    if words is not None:
        yield f"  {words.who} wrote last:"
        yield from (f"    | {line}" for line in words.lines)


def _words(who: str, written: Iterable[str]) -> LastWords | None:
    lines = _choose(written)
    return LastWords(who, tuple(lines)) if lines else None


def _choose(written: Iterable[str]) -> list[str]:
    """The last traceback with those that it goes back to, and what came after; else the last few lines."""
    lines = [line for line in deque(written, MOST_LINES) if line.strip()]
    starts = [index for index, line in enumerate(lines) if _TRACEBACK in line]
    if not starts:
        return lines[-FEW_LINES:]
    start = starts.pop()
    while starts and any(_CHAINED.search(line) for line in lines[starts[-1] : start]):
        start = starts.pop()
    return lines[start:]
