"""Faults made on purpose: ``argosy run --inject kill:rank=1@step=40``.

An injection is the real thing (a signal, a lost node, a flipped byte), never an imitation of its symptoms.
Each happens once per run; a marker below ``$ARGOSY_LOCAL_DIR/injected/`` remembers it over restarts.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError

RANK_FAULTS = ("kill", "exit", "segv", "hang", "abort", "fpe", "bus", "term")
"""Carried out by launch on one rank: SIGKILL, exit with a code, SIGSEGV, SIGSTOP, SIGABRT, SIGFPE, SIGBUS, SIGTERM."""
NODE_FAULTS = ("preempt", "node-loss")
"""Carried out by the gang's host on a virtual node: SIGTERM and reclaim, or a power cut."""
CORRUPT, SUPERVISOR_KILL = "corrupt-shard", "supervisor-kill"
RUN_FAULTS = (CORRUPT, SUPERVISOR_KILL)
"""A byte of the newest checkpoint flipped and rank 0 killed; the supervisor's own SIGKILL."""
FAULTS = (*RANK_FAULTS, *NODE_FAULTS, *RUN_FAULTS)

PHASES = ("start", "restore", "save", "end")
"""Of a rank: its process has been started; it reads a checkpoint; it writes one; its last step is done."""
CANNOT_EXIT = "injection exit cannot happen"
"""How it begins that a script cannot exit as was asked for."""

_HELP = (
    "write FAULT[:rank=R|node=N][,code=C]@step=S, or @seconds=S after the start, or @phase=start, restore, save or "
    "end, for example kill:rank=1@step=40, kill:rank=1@seconds=5, kill:rank=0@phase=save, exit:rank=0,code=3@step=40, "
    "segv:rank=1@step=40, hang:rank=1@step=40, preempt:node=1@step=40, node-loss:node=1@step=40, "
    "corrupt-shard@step=40, supervisor-kill@step=40"
)
_SYNTAX = re.compile(r"(?P<fault>[a-z-]+)(?::(?P<options>[^@]*))?@(?P<by>step|seconds|phase)=(?P<when>[^@\s]{1,40})")
_OPTION = re.compile(r"(?P<name>rank|node|code)=(?:(?<=node=)node-)?(?P<value>[0-9]{1,6})")
_WANTED: dict[str, set[str]] = {
    **{fault: {"rank"} for fault in RANK_FAULTS},
    "exit": {"rank", "code"},
    **{fault: {"node"} for fault in NODE_FAULTS},
    **{fault: set() for fault in RUN_FAULTS},
}


@dataclass(frozen=True)
class Injection:
    """One fault: at the end of optimizer step ``step`` (from 1), ``seconds`` after the ranks were started (else 0), or
    when its rank is in ``phase`` (else ""); of a node it is the first rank, of the run rank 0.

    ``rank`` is global; ``node`` the number of the virtual node (``node-1`` is 1); ``code`` an exit code 1..255.
    """

    fault: str
    rank: int | None
    node: int | None
    step: int
    code: int | None
    seconds: int = 0
    phase: str = ""

    @property
    def text(self) -> str:
        """The canonical form; :func:`parse` of it gives an equal injection."""
        named = (("rank", self.rank), ("node", self.node), ("code", self.code))
        options = ",".join(f"{name}={value}" for name, value in named if value is not None)
        when = f"seconds={self.seconds}" if self.seconds else f"step={self.step}"
        when = f"phase={self.phase}" if self.phase else when
        return f"{self.fault}{':' if options else ''}{options}@{when}"

    def as_fault(self) -> dict[str, Any]:
        """What an assignment carries: {"fault", "rank", "step", "seconds", "phase", "code"}."""
        at = {"step": self.step, "seconds": self.seconds, "phase": self.phase}
        return {"fault": self.fault, "rank": self.rank, **at, "code": self.code}


def parse(text: str) -> Injection:
    """Read one ``--inject`` value.

    Raises:
        InputError: unknown fault or phase, a missing, unknown or repeated option, a step or second below 1, an exit by
            anything but a step (only the script's own report of one can carry it out); names the syntax.
    """
    found = _SYNTAX.fullmatch(text.strip())
    if found is None:
        raise InputError(f"inject = {text!r}: not an injection; {_HELP}")
    fault = found["fault"]
    if fault not in FAULTS:
        raise InputError(f"inject = {text!r}: unknown fault {fault!r}, there are {', '.join(FAULTS)}; {_HELP}")
    options = _options(text, found["options"])
    wanted = _WANTED[fault]
    if set(options) != wanted:
        needs = " and ".join(sorted(wanted, reverse=True)) or "no options"
        raise InputError(f"inject = {text!r}: {fault} takes {needs}; {_HELP}")
    by, code = found["by"], options.get("code")
    if fault == "exit" and by != "step":
        raise InputError(f"inject = {text!r}: a rank exits by itself when it reports a step; say @step=S; {_HELP}")
    if code is not None and not 1 <= code <= 255:
        raise InputError(f"inject = {text!r}: an exit code of a failure is 1..255; {_HELP}")
    rank, node = options.get("rank"), options.get("node")
    if by == "phase":
        return Injection(fault, rank, node, 0, code, phase=_phase(text, found["when"]))
    number = _number(text, by, found["when"])
    return Injection(fault, rank, node, number, code) if by == "step" else Injection(fault, rank, node, 0, code, number)


def _number(text: str, by: str, raw: str) -> int:
    if not raw.isdecimal() or int(raw) < 1:
        raise InputError(f"inject = {text!r}: {raw!r} after {by}= is no whole number from 1; {_HELP}")
    return int(raw)


def _phase(text: str, raw: str) -> str:
    if raw not in PHASES:
        raise InputError(f"inject = {text!r}: unknown phase {raw!r}, there are {', '.join(PHASES)}; {_HELP}")
    return raw


def check_gang(injection: Injection, nnodes: int, nproc: int, spares: int = 0) -> None:
    """Whether the gang has such a rank or node; its spares have nodes too.

    Raises:
        InputError: it has not.
    """
    if injection.rank is not None and injection.rank >= nnodes * nproc:
        raise InputError(f"inject = {injection.text!r}: the gang has ranks 0..{nnodes * nproc - 1}; name one of them")
    last = nnodes + spares - 1
    if injection.node is not None and injection.node > last:
        raise InputError(f"inject = {injection.text!r}: the gang runs on node-0..node-{last}; name one of them")


def _options(text: str, raw: str | None) -> dict[str, int]:
    if raw is None:
        return {}
    options: dict[str, int] = {}
    for item in raw.split(","):
        found = _OPTION.fullmatch(item.strip())
        if found is None or found["name"] in options:
            raise InputError(f"inject = {text!r}: cannot read {item!r}; {_HELP}")
        options[found["name"]] = int(found["value"])
    return options


def from_environment() -> tuple[Injection, ...]:
    """The injections in $ARGOSY_INJECT (a JSON list of strings); none when it is not set.

    Raises:
        InputError: not a JSON list of strings, or one of them is wrong.
    """
    raw = os.environ.get(env.INJECT, "")
    if not raw:
        return ()
    try:
        listed = json.loads(raw)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise InputError(f"{env.INJECT} = {raw!r}: a JSON list of injections is wanted; {_HELP}")
    return tuple(parse(item) for item in listed)


def _marker(injection: Injection) -> Path:
    name = re.sub(r"[^a-z0-9=-]", "_", injection.text)
    return Path(os.environ[env.LOCAL_DIR]) / "injected" / name


def has_fired(injection: Injection) -> bool:
    """Whether it happened in this run already."""
    return _marker(injection).exists()


def mark_fired(injection: Injection) -> bool:
    """Remember durably that it happens; True for the first to say so, who may then let it happen."""
    marker = _marker(injection)
    marker.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    os.fsync(handle)
    os.close(handle)
    folder = os.open(marker.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)
    return True
