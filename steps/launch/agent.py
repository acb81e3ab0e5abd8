"""What starts the ranks of a restart on this node: an agent of its own for each, and everything below it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, ClassVar, Final

from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.pods import processes

TAIL_LINES = 60
END_SECONDS = 0.01
"""Between two looks at an agent whose ranks end: nobody trains meanwhile."""
_LOOK_SECONDS = 0.05
HELD_SECONDS = 20.0
PYTHON: Final = [sys.executable, "-P", "-m"]
"""-P: a file of the user's named like a module of ours or of torch must not shadow it."""


def shim(command: Sequence[str]) -> list[str]:
    """What an agent starts as a rank: our own parent of ``command``."""
    return [*PYTHON, "argosy.steps.launch.rank", "--", *command]


def pass_on(stream: IO[bytes], name: str, tail: deque[str]) -> None:
    """An agent's own messages into the pod's log, the last ones kept, to the end of the stream."""
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\0").rstrip()  # mpirun ends its boxes with a NUL
        tail.append(line)
        with contextlib.suppress(OSError):
            os.write(1, f"[{name}] {line}\n".encode())


def adopt_orphans() -> None:
    """Make every orphan below this process its child: ranks are in sessions of their own."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _writers() -> set[int]:
    """Processes that still store what a rank has saved: a rank that SIGTERM ended may have left a whole checkpoint."""
    return processes.carrying(env.CHECKPOINT_WRITER, "1", whole=True) & processes.descendants(os.getpid())


class Agent(ABC):
    """Made before anybody knows what it will run, begun once; ``tail`` are its own last lines."""

    name: ClassVar[str]

    def __init__(self, nproc_per_node: int) -> None:
        self._nproc = nproc_per_node
        self.ranks_from = ""
        """Folder of the standby that ranks are forked from; empty: each is a Python of its own from the start."""
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.stuck: StepError | None = None
        """The node's fault: what survives SIGKILL holds the GPU and the memory that the next ranks here would need."""

    def next(self) -> Agent:
        """The agent of the next restart, after this one has ended."""
        return type(self)(self._nproc)

    def stays(self) -> set[int]:
        """Processes that outlive this agent's ranks."""
        return set()

    @abstractmethod
    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Start the ranks: ``command`` in this environment, and in what each adds to it, in this working directory."""

    @abstractmethod
    def poll(self) -> int | None:
        """0 when every rank ended well, None while one runs; it ends the others when one fails."""

    @abstractmethod
    def terminate(self) -> None:
        """SIGTERM for all ranks."""

    @abstractmethod
    def reap(self) -> None:
        """Wait for processes that have been killed."""

    def end(self, grace_seconds: float) -> None:
        """SIGTERM, ``grace_seconds`` for ranks and their writers, then SIGKILL for all below us but what stays; what
        survives that is not waited for again.
        """
        if self.stuck is not None:
            return
        self.terminate()
        deadline = time.monotonic() + grace_seconds
        while ((runs := self.poll() is None) or _writers()) and time.monotonic() < deadline:
            time.sleep(END_SECONDS if runs else _LOOK_SECONDS)
        try:
            self._kill()
        except TimeoutError as error:
            text = f"{error}: the kernel, a driver or a file system of this node holds them"
            self.stuck = StepError(Cause.HANG, text, quote=text, code=ExitCode.SUSPECT_NODE)

    def is_held(self) -> bool:
        """Whether what survived SIGKILL is still there a while later: much pinned memory is given back slowly."""
        deadline = time.monotonic() + HELD_SECONDS
        while self.stuck is not None and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                self._kill()
                self.stuck = None
        return self.stuck is not None

    def _kill(self) -> None:
        processes.kill_all(lambda: processes.descendants(os.getpid()) - self.stays())
        self.reap()
