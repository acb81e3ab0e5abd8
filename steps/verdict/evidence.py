"""What the lines of a log speak for: what came first, what was only its consequence, what else it may have been."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.families.frames import (
    ELSEWHERE,
    about_name,
    addressed_by,
    is_of_the_machine,
    is_of_the_program,
    may_be_about,
    named_by,
)
from argosy.steps.verdict.line import rank_of, strip_prefixes
from argosy.steps.verdict.match import MAX_QUOTE, Evidence, code_of, doubted, hint_of, is_warning, match_line, topic_of
from argosy.steps.verdict.traceback import Raised, is_an_exception, raised_in

_PROGRESS = re.compile(
    r"\b(step|iter(ation)?|epoch|batch)\b['\"]?\s*[:=\[ ]\s*\[?\d+|'epoch': [\d.]+|\d+%\|.*\d+/\d+"
    r"|\bloss['\"]?[:=] ?\d",
    re.I,
)
_WRONG = re.compile(r"(?i)[:=]\s*\S?(nan|inf)|error|fail|exception|fatal|abort|kill")
_THROWN = re.compile(r"\s*what\(\):\s+(.+)")
"""What ended a process is what C++ threw, not the signal that followed."""
_ON_THE_HOST = re.compile(r"OOM when allocating.*(\b_device=\"\S*/cpu:\d|\bcpu:\d by allocator)", re.I)
"""TensorFlow names the device whose memory did not suffice, if only in the next line."""
OURS = "argosy: "
"""What we said stands: words that it quotes, and ours, are read for no other cause."""
_END = re.compile(f"^{OURS}stopped: |; stop: ")
"""So we say that a run has ended; what we said of the starts before was answered by another one."""
_ABORTED = re.compile(r"(?i)exit ?code\W+(134|-6)\b|SIGABRT|signal 6\b")
"""How we end ranks that hang, and how C++ exceptions and watchdogs end a process: their words say why."""
_MUTE = (Cause.NATIVE_CRASH, Cause.SIGTERM, Cause.PEER_LOST, Cause.UNKNOWN)  # no more than that processes ended
_HOW_WE_END = (Cause.SIGTERM, Cause.UNKNOWN)
"""What a launcher says of ranks that another node's failure ended; the supervisor saw them all."""
_ALIVE_LINES = 3
"""A script that goes on for so many lines of progress has survived what it said before."""
_SLOW = (Cause.NCCL_TIMEOUT, Cause.SIGTERM, Cause.NUMERICS_NAN)
"""What came after a limit of minutes, a stop from outside, or a loss that is no number, was not their cause."""


@dataclass(frozen=True)
class Said:
    """What line ``index`` speaks for; ``fatal``: it is part of an exception that nobody caught."""

    index: int
    evidence: Evidence
    fatal: bool = False


@dataclass(frozen=True)
class Reading:
    """The root, the best of the other causes, and what was taken for a consequence, in order."""

    root: Said
    runner_up: Said | None
    consequences: tuple[Said, ...]


@cache
def load_rules() -> None:
    """Compile the rules, which takes 40 ms, while nobody waits for a verdict."""
    read_lines(["no rule knows this line, so all are tried"])


def read_lines(lines: Sequence[str]) -> Evidence | None:
    """What a process's last lines speak for."""
    reading = read(lines)
    return None if reading is None else reading.root.evidence


def read(lines: Sequence[str]) -> Reading | None:
    """The root of what the lines of one log say, of all its ranks; None when they say nothing that is known."""
    said = said_in(lines)
    return choose(said, progress_in(lines, said)) if said else None


def said_in(lines: Sequence[str], guess: bool = False, mute: Container[int] = ()) -> list[Said]:
    """Everything that the lines speak for, in order, each with its own weight.

    ``guess``: also what lines are about that no rule knows; for logs without a record of how their processes ended.
    ``mute``: indices of lines of which it is known that no rule matches them.
    """
    plain = [strip_prefixes(line) for line in lines]
    found: dict[int, Said] = {}
    for index, line in enumerate(plain):
        evidence = None if index in mute else match_line(line)
        if evidence is None and (words := _THROWN.match(line)):
            cause = topic_of(words.group(1)) or Cause.NATIVE_CRASH
            evidence = Evidence(cause, line.strip()[:MAX_QUOTE], Weight.GENERIC, cause.exit_code)
        elif evidence is not None and _ON_THE_HOST.search(" ".join(_message(plain, index, 2))):
            evidence = replace(evidence, cause=Cause.HOST_OOM, code=Cause.HOST_OOM.exit_code)
        if evidence is not None:
            found[index] = Said(index, doubted(evidence, lines[index]))
    chains = raised_in(plain, [rank_of(line.partition("Traceback (")[0]) for line in lines])
    for raised in chains:
        if raised.exceptions:
            _place(raised, plain, found)
            _weigh_raised(raised, plain, found)
    worded = {index for raised in chains for index in raised.words}
    last = max((raised.exceptions[-1] for raised in chains if raised.exceptions and not raised.by_launcher), default=-1)
    for index in found.keys() - worded:
        if plain[index].startswith(OURS):
            continue
        said = _loose(found[index], plain[index], " ".join(_message(plain, index, 4)))
        found[index] = _lived_without(said, plain[index], last)
    if guess:
        for raised in chains:
            if raised.cut is not None and not (raised.exceptions or raised.by_launcher):
                begin = raised.frames[0]
                about = Evidence(raised.cut, plain[begin][:MAX_QUOTE], Weight.HINT, raised.cut.exit_code)
                found.setdefault(begin, Said(begin, about))
        code = {index for raised in chains for index in raised.frames}
        silent = not found
        for index, line in enumerate(plain):
            if index in found or index in code or (is_warning(lines[index]) and not silent):
                continue
            hint = (index + 1 not in code and _goes_on(plain, index)) or hint_of(line)
            if hint and (_WRONG.search(line) or not _PROGRESS.search(line)):  # names of metrics are no trouble
                found[index] = Said(index, hint)
    return [found[index] for index in sorted(found)]


def _goes_on(plain: Sequence[str], index: int) -> Evidence | None:
    """What a message is about that goes on in indented lines."""
    line, *more = _message(plain, index, 2)
    hint = hint_of(" ".join((line, *more))) if more and line and not line[0].isspace() else None
    return replace(hint, quote=line.strip()[:MAX_QUOTE]) if hint else None


def _message(plain: Sequence[str], index: int, most: int) -> Iterable[str]:
    """A line and those after it that are indented."""
    following = takewhile(lambda line: line.startswith((" ", "\t")), plain[index + 1 : index + most])
    return plain[index], *(line.strip() for line in following)


def _loose(said: Said, line: str, message: str) -> Said:
    """An exception without its traceback, in words that no rule knows, is about its topic like one with frames."""
    evidence = said.evidence
    if evidence.cause == Cause.USER_EXCEPTION:
        about = about_name(line, topic_of(message)) or (Cause.UNKNOWN if is_of_the_machine(line) else None)
        cause = about if about is not None and may_be_about(line, about) else evidence.cause
    else:
        whose = named_by(line) or addressed_by(line) or evidence.cause
        cause = ELSEWHERE.get((evidence.cause, whose), evidence.cause)
    return said if cause == evidence.cause else Said(said.index, _as(evidence, cause))


def _lived_without(said: Said, line: str, last: int) -> Said:
    """A library that only a line tells is missing was done without, where the program raised something later."""
    evidence = said.evidence
    if evidence.cause != Cause.IMPORT_ERROR or said.index >= last or is_an_exception(line):
        return said
    return replace(said, evidence=replace(evidence, weight=min(evidence.weight, Weight.MESSENGER)))


def _as(evidence: Evidence, cause: Cause) -> Evidence:
    code = code_of(cause, evidence.quote)
    return replace(evidence, cause=cause, code=code, weight=max(evidence.weight, Weight.GENERIC))


def _place(raised: Raised, plain: Sequence[str], found: dict[int, Said]) -> None:
    """An error of the operating system means what whose code met it."""
    for at, (library, _) in zip(raised.exceptions, raised.below, strict=True):
        whose = library or named_by(plain[at])
        if at in found and whose is not None:
            evidence = found[at].evidence
            vague = evidence.cause != Cause.GPU_OOM or evidence.weight != Weight.ROOT  # no words that name the GPU
            if vague and (cause := ELSEWHERE.get((evidence.cause, whose))) is not None:
                found[at] = Said(at, _as(evidence, cause))


def _weigh_raised(raised: Raised, plain: Sequence[str], found: dict[int, Said]) -> None:
    """Mark the words of an exception that nobody caught; find a voice for one that no pattern knows."""
    mine = [index for index in raised.words if index in found]
    for index in mine:
        said = found[index]
        evidence = said.evidence
        if raised.by_launcher and evidence.cause == Cause.USER_EXCEPTION:
            evidence = replace(evidence, weight=Weight.SUMMARY, cause=Cause.UNKNOWN, code=Cause.UNKNOWN.exit_code)
        found[index] = Said(index, evidence, fatal=True)
    own = [index for index in mine if found[index].evidence.cause == Cause.USER_EXCEPTION]
    known = [index for index in mine if index not in own]
    if any(found[index].evidence.weight <= Weight.MESSENGER for index in known):
        # A script's own exception around a lost peer or a timeout only passes it on.
        for index in own:
            del found[index]
    if known and not raised.by_launcher:
        for index in own[:-1]:  # of several the last one is shown
            found.pop(index, None)
        return
    for index in own:
        found.pop(index, None)
    at, cause = _meant(raised, plain)
    if not raised.by_launcher or cause == Cause.LAUNCHER_USAGE:
        code = code_of(cause, plain[at])
        found[at] = Said(at, Evidence(cause, plain[at][:MAX_QUOTE], Weight.GENERIC, code), fatal=True)


def _meant(raised: Raised, plain: Sequence[str]) -> tuple[int, Cause]:
    """What an exception is about that no rule knows, and its line: by its type, whose code raised it, and its words."""
    ends = [*raised.exceptions[1:], len(plain)]
    for at, end, (library, innermost) in zip(raised.exceptions, ends, raised.below, strict=True):
        if innermost == Cause.LAUNCHER_USAGE:
            return at, innermost
        if is_of_the_program(plain[at]):
            if innermost == Cause.CHECKPOINT_MISMATCH:
                return at, innermost
        elif library not in (None, Cause.LAUNCHER_USAGE):
            return at, library
        elif (named := about_name(plain[at], topic_of(plain[at]))) is not None:
            return at, named
        words = (topic_of(plain[index]) for index in raised.words if at <= index < end)
        if about := next((cause for cause in words if may_be_about(plain[at], cause)), None):
            return at, about
    last = raised.exceptions[-1]
    return last, (raised.cut or Cause.UNKNOWN) if is_of_the_machine(plain[last]) else Cause.USER_EXCEPTION


def progress_in(lines: Sequence[str], said: Sequence[Said]) -> list[int]:
    """Indices of lines that tell of a step done and of nothing else."""
    taken = {one.index for one in said}
    return [index for index, line in enumerate(lines) if index not in taken and _PROGRESS.search(line)]


def choose(said: Sequence[Said], progress: Sequence[int] = ()) -> Reading:
    """The earliest of what is believed most; ``said`` is in the order of time and not empty."""
    root = _root(without_survived(said, progress))
    root = _our_end(said) or max(
        (
            one
            for one in said
            if one.evidence.cause == root.evidence.cause and one.evidence.weight == root.evidence.weight
        ),
        key=lambda one: (
            one.evidence.code != one.evidence.cause.exit_code,
            one is root,
            -one.index,
        ),
    )
    others = [one for one in said if one is not root]
    rest = [one for one in others if one.evidence.cause != root.evidence.cause]
    return Reading(root, _root(rest) if rest else None, tuple(others))


def without_survived(said: Sequence[Said], progress: Sequence[int]) -> Sequence[Said]:
    """Without what the script lived on after for a while, if something as weighty came later."""
    alive = progress[-_ALIVE_LINES] if len(progress) >= _ALIVE_LINES else -1
    later = [one for one in said if one.index > alive]
    strong = max((one.evidence.weight for one in later), default=Weight.SUMMARY)
    return later if strong >= Weight.GENERIC else said


def _root(said: Sequence[Said]) -> Said:
    strongest = max(one.evidence.weight for one in said)
    if strongest == Weight.ROOT:
        fatal = [one for one in said if one.evidence.weight == Weight.ROOT and one.fatal]
        return fatal[0] if fatal else _first(said, strongest)
    first = _first(said, strongest)
    if strongest == Weight.CASCADE:  # the consequence of nobody knows what gives way to one that is named
        equal = (one for one in said if one.evidence.weight == strongest)
        return next((one for one in equal if one.evidence.cause != Cause.UNKNOWN), first)
    if strongest == Weight.GENERIC:
        slow = (one for one in said if one.evidence.weight == Weight.MESSENGER and one.evidence.cause in _SLOW)
        earlier = next(slow, first)
        return earlier if earlier.index < first.index else first
    if first.evidence.cause == Cause.NATIVE_CRASH and _ABORTED.search(first.evidence.quote):
        hung = (one for one in said if one.evidence.cause == Cause.HANG and _is_ours(one))
        told = [one for one in said if one.evidence.weight < strongest and one.evidence.cause not in _MUTE]
        return next(hung, min(told, key=lambda one: one.evidence.weight == Weight.HINT, default=first))
    if first.evidence.cause in _HOW_WE_END:
        return next((one for one in said if one.evidence.weight == strongest and _is_ours(one)), first)
    return first


def _our_end(said: Sequence[Said]) -> Said | None:
    """What we said last of a run's end, whatever it had got over; None: nothing."""
    return next((one for one in reversed(said) if _is_ours(one) and _END.search(one.evidence.quote)), None)


def _is_ours(one: Said) -> bool:
    return one.evidence.quote.startswith(OURS)


def _first(said: Iterable[Said], weight: Weight) -> Said:
    return next(one for one in said if one.evidence.weight == weight)
