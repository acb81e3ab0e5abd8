"""From excerpts of several logs to one verdict: what came first, on which rank and node, and what else it may be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.evidence import Said, choose, progress_in, said_in, without_survived
from argosy.steps.verdict.line import Line, node_of, rank_of, strip_prefixes, time_of
from argosy.steps.verdict.match import match_line, noun_of, topic_of
from argosy.steps.verdict.neighbours import NEIGHBOURS
from argosy.workflows.diagnosis.remedies import remedy_of

_CONFIDENCE = {
    Weight.MACHINE: 0.97,
    Weight.ROOT: 0.95,
    Weight.GENERIC: 0.85,
    Weight.MESSENGER: 0.75,
    Weight.HINT: 0.5,
    Weight.CASCADE: 0.6,
    Weight.SUMMARY: 0.4,
}
"""How often the first word of this weight was right on the public logs of tests/verdict that rules are built on."""
_RIVAL = 0.1
"""Taken off where another cause has a word of the same weight."""
_NEAR_LINES = 40
_LAST_LINES = 40
_IN_NAME = re.compile(r"(?:rank|worker|node)[-_]?(\d+)", re.IGNORECASE)
MOST_CONSEQUENCES = 20


@dataclass(frozen=True)
class Named:
    """A cause with the line that proves it, None where no line does."""

    cause: Cause
    exit_code: int
    line: Line | None


@dataclass(frozen=True)
class Diagnosis:
    """The root and what belongs to it; ``rank`` is None and ``node`` "" where the logs do not tell."""

    root: Named
    rank: int | None
    node: str
    confidence: float
    runner_up: Named | None
    consequences: tuple[Named, ...]

    def record(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            **_record(self.root),
            "rank": self.rank,
            "node": self.node,
            "confidence": round(self.confidence, 2),
            "runner_up": _record(self.runner_up) if self.runner_up else None,
            "consequences": [_record(named) for named in self.consequences],
            "meaning": self.root.cause.meaning,
            "remedy": remedy_of(self.root.cause),
        }


@dataclass(frozen=True)
class _Placed:
    said: Said
    lines: Sequence[Line]
    time: float | None

    @property
    def line(self) -> Line:
        return self.lines[self.said.index]

    def named(self) -> Named:
        return Named(self.said.evidence.cause, int(self.said.evidence.code), self.line)


def diagnose(logs: Sequence[Sequence[Line]]) -> Diagnosis:
    """The verdict over the excerpts of all files: by time where every one has time stamps, else file by file."""
    placed = [one for lines in logs for one in _read(lines)]
    if not placed:
        cause = Cause.UNKNOWN
        return Diagnosis(Named(cause, int(cause.exit_code), None), None, "", 0.0, _guessed(logs), ())
    if all(one.time is not None for one in placed):
        placed.sort(key=lambda one: one.time or 0.0)
    reading = choose([Said(index, one.said.evidence, one.said.fatal) for index, one in enumerate(placed)])
    root = placed[reading.root.index]
    if reading.runner_up is not None:
        second = placed[reading.runner_up.index].named()
        rival = reading.runner_up.evidence.weight >= reading.root.evidence.weight
    else:
        second = _guessed(logs) if root.said.evidence.cause == Cause.UNKNOWN else _second(root)
        rival = False
    return Diagnosis(
        root.named(),
        _near(root, rank_of, _rank_in_name(root.line.file)),
        _near(root, node_of, "") or "",
        _CONFIDENCE[reading.root.evidence.weight] - (_RIVAL if rival else 0.0),
        second,
        tuple(placed[one.index].named() for one in reading.consequences[:MOST_CONSEQUENCES]),
    )


def _guessed(logs: Sequence[Sequence[Line]]) -> Named:
    """What it may be though nothing says so: what the last lines name most often, the lack of memory without any."""
    last = [(strip_prefixes(line.text), line) for lines in logs for line in lines[-_LAST_LINES:]]
    unread = [
        (text, line) for text, line in last if match_line(text) is None and not text.lstrip().startswith('File "')
    ]
    named = [(cause, line) for text, line in unread if (cause := noun_of(text)) is not None]
    if not named:
        return Named(NEIGHBOURS[Cause.UNKNOWN], int(NEIGHBOURS[Cause.UNKNOWN].exit_code), None)
    (cause, _), *_ = Counter(cause for cause, _ in named).most_common(1)
    return Named(cause, int(cause.exit_code), next(line for one, line in named if one == cause))


def _second(root: _Placed) -> Named:
    """What else the only thing that was said may be: by its own words where no rule knows them, else its neighbour."""
    cause = root.said.evidence.cause
    vague = cause == Cause.USER_EXCEPTION or root.said.evidence.weight == Weight.HINT
    about = topic_of(strip_prefixes(root.line.text), besides=cause) if vague else None
    other = about or NEIGHBOURS.get(cause, Cause.UNKNOWN)
    return Named(other, int(other.exit_code), root.line if about else None)


def _read(lines: Sequence[Line]) -> list[_Placed]:
    texts = [line.text for line in lines]
    mute = frozenset(index for index, line in enumerate(lines) if line.silent)
    said = said_in(texts, guess=True, mute=mute)
    kept = without_survived(said, progress_in(texts, said)) if said else []
    times: list[float | None] = []
    for text in texts:
        times.append(time_of(text) or (times[-1] if times else None))
    return [_Placed(one, lines, times[one.index]) for one in kept]


def _near(root: _Placed, read: Any, default: Any) -> Any:
    """What the proving line tells, else the nearest line before it, else the nearest after it."""
    index = root.said.index
    before = range(index, max(-1, index - _NEAR_LINES), -1)
    after = range(index + 1, min(len(root.lines), index + _NEAR_LINES))
    for at in (*before, *after):
        found = read(root.lines[at].text)
        if found not in (None, ""):
            return found
    return default


def _rank_in_name(file: str) -> int | None:
    match = _IN_NAME.search(file.rpartition("/")[2])
    return int(match.group(1)) if match else None


def _record(named: Named) -> dict[str, Any]:
    line = named.line
    evidence = {"file": line.file, "line": line.number, "text": line.text.strip()} if line else None
    return {"cause": str(named.cause), "exit_code": named.exit_code, "evidence": evidence}
