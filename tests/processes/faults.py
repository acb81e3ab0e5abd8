"""Twelve ways in which a rank or its background writer can fail, and how each is brought about from outside."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.pods import processes
from tests.processes.control import Control
from tests.processes.holding import Hold

WRITER = b"argosy.steps.checkpointer"


@dataclass(frozen=True)
class Victim:
    """A rank's script, and how it and its store are reached."""

    gang: str
    rank: int
    pid: int
    control: Control
    holds: list[Hold]

    def writer(self) -> int:
        """Pid of its background writer; 0: it has none (yet)."""
        for pid in processes.descendants(self.pid):
            command = Path(f"/proc/{pid}/cmdline")
            if command.exists() and WRITER in command.read_bytes().split(b"\0"):
                return pid
        return 0

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def tell(self, command: str) -> None:
        self.control.tell(self.gang, self.rank, command)


@dataclass(frozen=True)
class Fault:
    """``codes`` the script may end with (empty: it does not end by itself)."""

    strike: Callable[[Victim], None]
    codes: frozenset[int] = frozenset()
    hangs: bool = False
    of_writer: bool = False


def _short_of_memory(victim: Victim) -> None:
    # Its address space may not grow any more; less than it has, for it may be struck while it holds what every step
    # takes (64 MB) and gives back, and must not get that again.
    size = int(Path(f"/proc/{victim.pid}/statm").read_text().split()[0]) * resource.getpagesize() - (32 << 20)
    resource.prlimit(victim.pid, resource.RLIMIT_AS, (size, size))


def _signal_writer(number: int) -> Callable[[Victim], None]:
    return lambda victim: os.kill(victim.writer(), number)


def _unreachable(victim: Victim) -> None:
    # No request of this rank is answered any more.
    who = (victim.gang, victim.rank)
    victim.holds.append(Hold(lambda asks, _request: asks == who, always=True))


def _signal(number: int) -> Callable[[Victim], None]:
    return lambda victim: victim.signal(number)


def _tell(command: str) -> Callable[[Victim], None]:
    return lambda victim: victim.tell(command)


STOPPED = frozenset({70, 75, 1})
"""What a script ends with that is told that its checkpoints cannot go on."""

KINDS = {
    "SIGKILL": Fault(_signal(signal.SIGKILL), frozenset({-signal.SIGKILL})),
    "SIGTERM": Fault(_signal(signal.SIGTERM), frozenset({-signal.SIGTERM})),
    "SIGSTOP": Fault(_signal(signal.SIGSTOP), hangs=True),
    "SIGSEGV": Fault(_tell("segv"), frozenset({-signal.SIGSEGV})),
    "SIGABRT": Fault(_tell("abort"), frozenset({-signal.SIGABRT})),
    "os._exit(42)": Fault(_tell("exit"), frozenset({42})),
    "uncaught exception": Fault(_tell("raise"), frozenset({1, 70})),
    "SIGINT": Fault(_signal(signal.SIGINT), frozenset({1})),
    "holds the GIL": Fault(_tell("gil"), hangs=True),
    # 127: glibc's own "cannot allocate memory for thread-local data: ABORT".
    "no more memory": Fault(_short_of_memory, frozenset({1, 75, 127, -signal.SIGABRT})),
    "writer SIGKILL": Fault(_signal_writer(signal.SIGKILL), STOPPED, of_writer=True),
    "writer SIGSTOP": Fault(_signal_writer(signal.SIGSTOP), hangs=True, of_writer=True),
    "store out of reach": Fault(_unreachable, hangs=True, of_writer=True),
}
