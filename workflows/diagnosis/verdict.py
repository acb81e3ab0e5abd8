"""From excerpts of several logs to one verdict: what came first, on which rank and node, and what else it may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.trouble import ASKED_FOR_STACKS
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.evidence import OURS, Said, choose, progress_in, said_in, without_survived
from argosy.steps.verdict.line import Line, node_of, rank_of, strip_prefixes, time_of
from argosy.steps.verdict.match import guessed_code, is_benign
from argosy.workflows.diagnosis.learned import likely, speaks_for, tells_of_trouble
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
_LEAST_CHANCE = 0.15
"""Below it what the words are like is a second guess only."""
_NEAR_LINES = 40
_IN_NAME = re.compile(r"(?:rank|worker|node)[-_]?(\d+)", re.IGNORECASE)
_LOCAL_RANK = re.compile(r"\blocal_rank: (\d+)")
_OF_TORCHRUN = re.compile(r"\brank\s+: (\d+) \(local_rank: (\d+)\)")
MOST_CONSEQUENCES = 20
_HOST = "host.json"


@dataclass(frozen=True)
class Named:
    """A cause with the line that proves it, None where no line does."""

    cause: Cause
    exit_code: int
    line: Line | None


@dataclass(frozen=True)
class Diagnosis:
    """The root and what belongs to it; ``rank`` is None and ``node`` "" where the logs do not tell.

    ``by_words``: no rule knows a line, the cause is that of logs of alike words.
    """

    root: Named
    rank: int | None
    node: str
    confidence: float
    runner_up: Named | None
    consequences: tuple[Named, ...]
    by_words: bool = False

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
        return _by_words([line for lines in logs for line in lines])
    if all(one.time is not None for one in placed):
        placed.sort(key=lambda one: one.time or 0.0)
    reading = choose([Said(index, one.said.evidence, one.said.fatal) for index, one in enumerate(placed)])
    root = placed[reading.root.index]
    if reading.runner_up is not None:
        second = placed[reading.runner_up.index].named()
        rival = reading.runner_up.evidence.weight >= reading.root.evidence.weight
    else:
        guesses = likely([line.text for line in root.lines])
        without = Cause.HOST_OOM if root.said.evidence.cause == Cause.UNKNOWN else Cause.UNKNOWN
        other = next((cause for cause, _ in guesses if cause != root.said.evidence.cause), without)
        second = Named(other, int(other.exit_code), None)
        rival = False
    return Diagnosis(
        root.named(),
        _rank(root, placed),
        _near(root, node_of, "") or "",
        _CONFIDENCE[reading.root.evidence.weight] - (_RIVAL if rival else 0.0),
        second,
        tuple(placed[one.index].named() for one in reading.consequences[:MOST_CONSEQUENCES]),
    )


def _by_words(lines: Sequence[Line]) -> Diagnosis:
    """Where no rule knows a line: what the words are like, and behind none of any trouble a lack of memory."""
    # The words of argosy's own account of pods are no log's, whatever its fields are called.
    lines = [line for line in lines if not is_benign(line.text) and Path(line.file).name != _HOST]
    texts = [line.text for line in lines]
    guesses = (tells_of_trouble(texts) and likely(texts)) or [(Cause.HOST_OOM, 0.0)]
    cause, chance = guesses[0]
    # A program's own mistake shows itself by an exception, and would end the run.
    if cause in (Cause.UNKNOWN, Cause.USER_EXCEPTION) or chance < _LEAST_CHANCE:
        root, chance = Named(Cause.UNKNOWN, int(Cause.UNKNOWN.exit_code), None), 0.0
    else:
        line = max(lines, key=lambda one: speaks_for(cause, one.text))
        root = Named(cause, int(guessed_code(cause, line.text)), line)
    second = next(one for one, _ in guesses if one != root.cause)
    confidence = min(chance, _CONFIDENCE[Weight.HINT])
    return Diagnosis(root, None, "", confidence, Named(second, int(second.exit_code), None), (), by_words=True)


def _read(lines: Sequence[Line]) -> list[_Placed]:
    texts = [line.text for line in lines]
    mute = frozenset(index for index, line in enumerate(lines) if line.silent)
    said = said_in(texts, guess=True, mute=mute)
    kept = without_survived(said, progress_in(texts, said)) if said else []
    times: list[float | None] = []
    for text in texts:
        times.append(time_of(text) or (times[-1] if times else None))
    return [_Placed(one, lines, times[one.index]) for one in kept]


def _rank(root: _Placed, placed: Sequence[_Placed]) -> int | None:
    if (found := _own_rank(root)) is not None or not root.said.evidence.quote.startswith(OURS):
        return found
    # What we quote mostly names nobody; the log of the rank that said it does.
    quoted = (one for one in placed if one is not root and strip_prefixes(one.line.text).strip() in root.line.text)
    return next((rank for one in reversed([*quoted]) if (rank := _own_rank(one)) is not None), None)


def _own_rank(root: _Placed) -> int | None:
    local = _LOCAL_RANK.search(root.line.text)
    if local is not None:  # a number on its node alone: torchrun's table below it tells whose it is
        rows = (_OF_TORCHRUN.search(line.text) for line in root.lines[root.said.index :])
        if (row := next((row for row in rows if row and row[2] == local[1]), None)) is not None:
            return int(row[1])
    found: int | None = _near(root, rank_of, _rank_in_name(root.line.file))
    return found


def _near(root: _Placed, read: Any, default: Any) -> Any:
    """What the proving line tells, else the nearest line before it, else the nearest after it."""
    index = root.said.index
    if root.said.evidence.quote == ASKED_FOR_STACKS:  # so was every rank, which says nothing of who held them up
        return None
    if root.said.evidence.quote.startswith(OURS):  # the lines around it are of other pods
        return read(root.line.text) or default
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
