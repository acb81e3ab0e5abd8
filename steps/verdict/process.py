"""How one process ended, read together with what it said last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from signal import Signals

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trouble import DISK_IS_FULL
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.evidence import read_lines
from argosy.steps.verdict.finding import Finding
from argosy.steps.verdict.match import MAX_QUOTE, Evidence
from argosy.steps.verdict.record import PodFact
from argosy.steps.verdict.standing import standing_of

_CRASHES = (Signals.SIGSEGV, Signals.SIGABRT, Signals.SIGFPE, Signals.SIGILL, Signals.SIGTRAP, Signals.SIGSYS)
_SHELL_SIGNAL_BASE = 128


def weigh_ending(ending: Ending, pods: Sequence[PodFact]) -> Finding | None:
    """The finding of one rank's end; None when it ended well or was ended on purpose."""
    if ending.stopped or (ending.exit_code == 0 and ending.signal is None):
        return None
    number = signal_of(ending)
    said = read_lines(ending.tail)
    if said is not None and said.cause == Cause.DISK_FULL:
        said = replace(said, quote=next((line for line in ending.tail if line.startswith(DISK_IS_FULL)), said.quote))
    evidence = _exited(ending, said) if number is None else _signalled(ending, number, said, pods)
    return Finding(
        evidence,
        rank=ending.rank,
        node=ending.node,
        pod=ending.pod,
        time=ending.time,
        signal=number,
        exit_code=ending.exit_code if number is None else None,
        step=ending.last_step,
    )


def signal_of(ending: Ending) -> int | None:
    """The signal that ended it; a shell's 128+n is read as n where n is a deadly signal."""
    if ending.signal is not None:
        return ending.signal
    code = ending.exit_code or 0
    plausible = (Signals.SIGKILL, Signals.SIGTERM, Signals.SIGBUS, Signals.SIGSEGV, Signals.SIGABRT, Signals.SIGINT)
    return code - _SHELL_SIGNAL_BASE if code - _SHELL_SIGNAL_BASE in plausible else None


def _who(ending: Ending) -> str:
    return f"rank {ending.rank}" + (f" on {ending.node}" if ending.node else "")


def _plain(cause: Cause, quote: str) -> Evidence:
    return Evidence(cause, quote, Weight.ROOT, cause.exit_code)


def _signalled(ending: Ending, number: int, said: Evidence | None, pods: Sequence[PodFact]) -> Evidence:
    quote = f"{_who(ending)} was ended by signal {number}"
    if said is not None and said.weight == Weight.MACHINE:
        return said
    if number == Signals.SIGKILL:
        if any(pod.name == ending.pod and pod.reason == "OOMKilled" for pod in pods):
            return _plain(Cause.HOST_OOM, f"{quote}; its pod was OOMKilled")
        # What it printed cannot have ended it: the kill came from outside, and nobody recorded why.
        return _plain(Cause.UNKNOWN, quote)
    if number in (Signals.SIGTERM, Signals.SIGINT, Signals.SIGHUP):
        return _plain(Cause.SIGTERM, quote)
    if number == Signals.SIGBUS:
        return said if said is not None and said.weight == Weight.ROOT else _plain(Cause.SHM_EXHAUSTED, quote)
    if number in _CRASHES:
        # SIGABRT is how NCCL's watchdog and C++ exceptions end a process: their words say why.
        silent = said is None or said.cause == Cause.NATIVE_CRASH
        if said is not None and not silent and (number == Signals.SIGABRT or said.weight >= Weight.ROOT):
            return said
        place = standing_of(ending).place
        where = f" at {place}" if place else ""
        words = f": {said.quote}" if said is not None and silent else ""
        return _plain(Cause.NATIVE_CRASH, quote + where + words)
    return said if said is not None else _plain(Cause.UNKNOWN, quote)


def _exited(ending: Ending, said: Evidence | None) -> Evidence:
    declared = ending.exit_code in set(ExitCode) and ending.exit_code != ExitCode.USAGE
    if said is not None:
        # An exit code of ours is the script's own word on the class; the cause keeps its evidence.
        if declared and ending.exit_code is not None and not _second_hand(ending, said):
            return Evidence(said.cause, said.quote, max(said.weight, Weight.GENERIC), ExitCode(ending.exit_code))
        return said
    last = next((line.strip() for line in reversed(ending.tail) if line.strip()), "")
    words = f" and printed last: {last}"[:MAX_QUOTE] if last else " and printed nothing"
    quote = f"{_who(ending)} exited with code {ending.exit_code}{words}"
    if declared and ending.exit_code is not None:
        cause = _OF_CODE.get(ExitCode(ending.exit_code), Cause.UNKNOWN)
        return Evidence(cause, quote, Weight.ROOT, ExitCode(ending.exit_code))
    return _plain(Cause.UNKNOWN, quote)


def _second_hand(ending: Ending, said: Evidence) -> bool:
    """Whether a rank only passes on, with the code that belongs to it, that another one was lost or late."""
    return said.quote.startswith("argosy: ") and said.weight < Weight.GENERIC and ending.exit_code == said.code


_OF_CODE = {
    ExitCode.FENCED: Cause.FENCED,
    ExitCode.PREEMPTED: Cause.SIGTERM,
}
