"""The script's hold on its writer: starts it, talks to it, and says how it ended when it did."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.arena import Arena
from argosy.steps.checkpointer.background import Background
from argosy.steps.checkpointer.lines import Lines, Record, ready
from argosy.steps.child_python import child_command, child_environ
from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.progress import pipe

_END_SECONDS = 15.0
_SAID_BYTES = 600
_LOOK_SECONDS = 0.5


class Writer:
    """A process (or a thread of this one) that stores what the arena holds."""

    def __init__(self, store: CheckpointStore, outcomes: dict[int, Record], *, process: bool) -> None:
        """Start it; it is not waited for. ``outcomes`` is filled with what became of each save, by its number."""
        self.arena = Arena()
        ours, theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._said, self._repeated = os.memfd_create("argosy-writer-said", os.MFD_CLOEXEC), 0
        """What a process of its own writes, and how much of it was shown."""
        self.answers: dict[str, Record] = {}
        """``ready`` and ``mapped``, once they have come."""
        self.outcomes = outcomes
        self.stored = 0
        """Windows that were stored."""
        self.failure: Record | None = None
        """An outcome that ends the training."""
        if process:
            self._process = self._spawn(theirs)
            theirs.close()
        else:
            background = Background(theirs, self.arena, store)
            self._thread = threading.Thread(target=background.run, name="argosy-writer", daemon=True)
            self._thread.start()
        self._lines = Lines(ours)
        self._reading = threading.RLock()

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        handles = (theirs.fileno(), self.arena.handle)
        progress = pipe()
        return subprocess.Popen(
            child_command("argosy.steps.checkpointer", *handles, os.getpid()),
            pass_fds=(*handles, *([] if progress is None else [progress])),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=child_environ(**{env.CHECKPOINT_WRITER: "1"}),
        )

    def send(self, record: Record, payload: Sequence[bytes] = ()) -> None:
        """Say something.

        Raises:
            StepError: the writer has ended.
        """
        try:
            self._lines.send(record, payload)
        except OSError as error:
            raise self._death() from error

    def poll(self) -> None:
        """Take in what it said, without waiting.

        Raises:
            StepError: the writer has ended, and had not said why.
        """
        with self._reading:
            self._repeat_said()
            for record, _ in self._lines.read():
                match record["is"]:
                    case "stored":
                        self.stored += 1
                    case "outcome" if "failure" in record:
                        self.failure = self.failure or record
                    case "outcome":
                        self.outcomes[int(record["number"])] = record
                    case kind:
                        self.answers[str(kind)] = record
        if self._lines.ended and self.failure is None:
            raise self._death()

    def await_news(self, deadline: float) -> None:
        """Wait for something to be said, then take it in.

        Raises:
            StepError: the writer has ended, or said nothing until ``deadline`` (``time.monotonic``).
        """
        seconds = deadline - time.monotonic()
        # Another thread may take in what we wait for, so no wait is long.
        if not self._lines.ended and not ready(self._lines, select.POLLIN, max(0.0, min(seconds, _LOOK_SECONDS))):
            with self._reading:
                self._repeat_said()
            if seconds <= 0:
                raise StepError(Cause.HANG, f"the checkpoint writer {self._name()} does not answer")
            return
        self.poll()

    def _name(self) -> str:
        return f"(process {self._process.pid})" if self._process is not None else "(a thread)"

    def _repeat_said(self) -> None:
        # A save that waits for its store would wait without a word.
        if said := os.pread(self._said, 1 << 16, self._repeated):
            self._repeated += len(said)
            sys.stderr.write(said.decode(errors="replace"))
            sys.stderr.flush()

    def _death(self) -> StepError:
        try:
            code: Any = self._process.wait(_END_SECONDS) if self._process is not None else None
        except subprocess.TimeoutExpired:
            return StepError(Cause.HANG, f"the checkpoint writer {self._name()} does not read what it is told")
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        said = os.pread(self._said, 1 << 16, 0)[-_SAID_BYTES:].decode(errors="replace").strip()
        text = f"the checkpoint writer {self._name()} {how}" + (f": {said}" if said else "")
        return StepError(Cause.NATIVE_CRASH, text)

    def close(self) -> None:
        """Let it go, and wait until it has."""
        if not self._lines.ended:
            self._lines.try_send({"do": "bye"})
        self._lines.hang_up()
        if self._process is not None:
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        self._repeat_said()
        os.close(self._said)
        self._lines.close()
        self.arena.close()
