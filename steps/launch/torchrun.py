"""torchrun as the agent, on standby until it is needed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.agent import PYTHON, TAIL_LINES, Agent, pass_on, shim
from argosy.steps.pods import processes

_READ: Final = 1 << 12


def _arguments(assignment: Assignment, nproc_per_node: int, command: Sequence[str]) -> list[str]:
    """Static rendezvous, ranks from the channel, no restarts of its own, our shim as the rank."""
    options = {
        "nnodes": assignment.nnodes,
        "node-rank": assignment.node_rank,
        "nproc-per-node": nproc_per_node,
        "master-addr": assignment.master_addr,
        "master-port": assignment.master_port,
        "max-restarts": 0,
        "rdzv-id": f"{assignment.run_id}-{assignment.attempt}-{assignment.restart}",
    }
    return [*(f"--{name}={value}" for name, value in options.items()), "--no-python", *shim(command)]


class _Standby:
    """The process that has imported torchrun, and the one fork of it that runs; ``tail`` are their last lines."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [*PYTHON, "argosy.steps.launch.standby"],
                stdin=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        assert self.process.stderr is not None
        self._read(self.process.stderr)
        self._heard = b""
        self._pid = 0
        self._code: int | None = None

    def _read(self, stream: IO[bytes]) -> threading.Thread:
        reader = threading.Thread(target=pass_on, args=(stream, Torchrun.name, self.tail), daemon=True)
        reader.start()
        return reader

    def fork(self, order: dict[str, object]) -> threading.Thread:
        """Have one run; what reads its stderr to the end. Whether it came so far is told by :meth:`poll`."""
        self._pid, self._code = 0, None
        ours, theirs = os.pipe()
        line = json.dumps(order).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._socket, [line], [theirs])
            self._socket.sendall(line[sent:])
        os.close(theirs)
        return self._read(os.fdopen(ours, "rb"))

    def poll(self, *, wait: bool = False) -> int | None:
        """The fork's return code, None while it runs; the process's own when that has ended."""
        while self._code is None and (wait or select.select([self._socket], [], [], 0)[0]):
            try:
                data = self._socket.recv(_READ)
            except ConnectionResetError:
                data = b""
            if not data:
                return self.process.wait()
            *lines, self._heard = (self._heard + data).split(b"\n")
            for told in map(json.loads, lines):
                self._pid, self._code = told.get("pid", self._pid), told.get("code")
        return self._code if self._code is not None else self.process.poll()

    def terminate(self) -> None:
        """SIGTERM for the fork. One that is not there yet will not come."""
        if self.poll() is None:
            processes.send(self._pid or self.process.pid, signal.SIGTERM)


class Torchrun(Agent):
    """Its own messages are passed on and the last ones kept."""

    name = "torchrun"

    def __init__(self, nproc_per_node: int, standby: _Standby | None = None) -> None:
        """Without ``standby``: start it.

        Raises:
            OSError: it cannot be started.
        """
        super().__init__(nproc_per_node)
        self._standby = standby or _Standby()
        self._reader: threading.Thread | None = None
        self.tail = self._standby.tail

    def next(self) -> Agent:
        """One that stood by for hours may have ended meanwhile, for memory for example; then there is another."""
        if self._standby.process.poll() is not None:
            return Torchrun(self._nproc)
        self.tail.clear()
        return Torchrun(self._nproc, self._standby)

    def stays(self) -> set[int]:
        """What later restarts are forked from."""
        return {self._standby.process.pid}

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """One that could not even import torch has ended by now: :meth:`poll` and ``tail`` tell."""
        arguments = _arguments(assignment, self._nproc, command)
        self._reader = self._standby.fork({"argv": arguments, "env": dict(environ), "cwd": str(folder)})

    def poll(self) -> int | None:
        """torchrun's return code, or None while it runs."""
        return self._standby.poll()

    def terminate(self) -> None:
        """SIGTERM: torchrun passes it to its ranks and waits for them."""
        if self._reader is not None:
            self._standby.terminate()

    def reap(self) -> None:
        """It, and the end of what it says."""
        if self._reader is not None:
            self._standby.poll(wait=True)
            self._reader.join(1.0)
