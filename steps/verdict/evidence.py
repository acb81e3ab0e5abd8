"""What one process's last lines speak for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from argosy.steps.contract.causes import EXIT_CODE, Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.families import PATTERNS
from argosy.steps.verdict.families.benign import REGEXES
from argosy.steps.verdict.pattern import Pattern, Weight

MAX_QUOTE = 500

_PREFIX = re.compile(
    r"^\s*(\[rank ?\d+\]:?\s?|\[\d+,\d+\]<std(err|out)>:\s?|\((\w+ )?pid=\d+[^)]*\)\s|\[[\w.-]+-\d+\]\s"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+(Z|[+-]\d\d:?\d\d)?\s)"
)
_BENIGN = re.compile("|".join(f"(?:{regex.replace('(?i)', '')})" for regex, _ in REGEXES), re.IGNORECASE)
_WARNING = re.compile(r"\bwarn(ing)?\b", re.IGNORECASE)
_OURS = re.compile(r"^argosy: ([a-z0-9_]+)[: ]")
_CHAINED = re.compile(r"^(During handling of the above exception|The above exception was the direct cause)")
_TRACEBACK = re.compile(r"^(Exception in thread.*|Original )?\+? ?Traceback \(most recent call last\)")
_CAUSES = {str(cause) for cause in Cause}
_SECOND_HAND = {Cause.PEER_LOST: Weight.CASCADE, Cause.HANG: Weight.MESSENGER, Cause.NCCL_TIMEOUT: Weight.MESSENGER}
"""What a rank of ours says of another one: it may end, and say so, before the one that caused it."""


@dataclass(frozen=True)
class Evidence:
    """A cause, the line it rests on, and how much it is worth."""

    cause: Cause
    quote: str
    weight: Weight
    code: ExitCode

    @classmethod
    def of(cls, pattern: Pattern, line: str) -> Evidence:
        """What a line says that matched."""
        code = EXIT_CODE[pattern.cause] if pattern.code is None else pattern.code
        return cls(pattern.cause, line.strip()[:MAX_QUOTE], pattern.weight, code)


def strip_prefixes(line: str) -> str:
    """The line without the ranks, pods and times that launchers put before it."""
    while match := _PREFIX.match(line):
        line = line[match.end() :]
    return line.rstrip()


def match_line(line: str) -> Evidence | None:
    """What one line, without prefixes, speaks for; None for nothing or a benign one."""
    ours = _OURS.match(line)
    if ours and ours.group(1) in _CAUSES:
        cause = Cause(ours.group(1))
        return Evidence(cause, line[:MAX_QUOTE], _SECOND_HAND.get(cause, Weight.ROOT), EXIT_CODE[cause])
    if not line or _BENIGN.search(line):
        return None
    return next((Evidence.of(pattern, line) for pattern in PATTERNS if pattern.matches(line)), None)


def read_lines(lines: Sequence[str]) -> Evidence | None:
    """What a process's last lines speak for, the greatest weight first, then the earliest line.

    A final traceback is believed before what was logged earlier, unless it only passes on another's trouble.
    """
    plain = [strip_prefixes(line) for line in lines]
    chain, start = _final_exceptions(plain)
    said = _spoken([match_line(line) for line in chain])
    before = _best(match_line(line) for line in plain[:start] if start == len(plain) or not _is_warning(line))
    after = _best(match_line(line) for line in plain[start:])
    everything = _best((before, after))
    if said is not None and said.weight >= Weight.ROOT:
        return everything if everything is not None and everything.weight > said.weight else said
    if everything is not None and everything.weight >= Weight.ROOT:
        return everything
    if said is not None:
        # Weak words of the final traceback (a lost peer, a bare error) stand; what was logged before it is weaker.
        return replace(said, quote=chain[-1][:MAX_QUOTE]) if said.cause == Cause.USER_EXCEPTION else said
    if chain:
        return Evidence(Cause.USER_EXCEPTION, chain[-1][:MAX_QUOTE], Weight.GENERIC, EXIT_CODE[Cause.USER_EXCEPTION])
    return everything


def _best(found: Iterable[Evidence | None]) -> Evidence | None:
    best: Evidence | None = None
    for evidence in found:
        if evidence is not None and (best is None or evidence.weight > best.weight):
            best = evidence
    return best


def _spoken(found: Sequence[Evidence | None]) -> Evidence | None:
    """The word of one chain of exceptions: a root, else the lost peer that a user's own exception wraps."""
    best = _best(found)
    if best is None or best.weight >= Weight.ROOT:
        return best
    weak = _best(evidence for evidence in found if evidence is not None and evidence.weight <= Weight.MESSENGER)
    return weak or best


def _is_warning(line: str) -> bool:
    return _WARNING.search(line) is not None and "NCCL WARN" not in line


def _final_exceptions(lines: Sequence[str]) -> tuple[list[str], int]:
    """Exception lines of the last traceback and those it is chained to, and where that group begins."""
    groups: list[tuple[list[str], int]] = []
    inside = chained = False
    for index, line in enumerate(lines):
        if _TRACEBACK.match(line):
            original = line.startswith("Original")
            if not groups or not (chained or original):
                groups.append(([], index))
            inside, chained = True, False
        elif _CHAINED.match(line):
            chained = True
            if not groups and (said := [earlier for earlier in lines[:index] if earlier and not earlier[0].isspace()]):
                groups.append(([said[-1]], 0))  # the beginning of this chain is no longer among the last lines
        elif inside and line and not line[0].isspace() and line[0] not in "|+":
            groups[-1][0].append(line)
            inside = False
    complete = [group for group in groups if group[0]]
    return complete[-1] if complete else ([], len(lines))
