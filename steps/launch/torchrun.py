"""torchrun as the agent, on standby until it is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.agent import PYTHON, TAIL_LINES, Agent, pass_on, shim
from argosy.steps.launch.environment import standby_environment
from argosy.steps.launch.forked import Forked
from argosy.steps.launch.wire import SOCKET_NAME, listen
from argosy.steps.paths import resolve

_FOLDER: Final = "/argosy/tmp/standby"


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
    """The process that torchrun is forked from, and ranks are if they are to find modules imported."""

    def __init__(self, preload: Sequence[str]) -> None:
        """Start it.

        Raises:
            OSError: it cannot be started.
        """
        self.preload = preload
        self.folder = resolve(_FOLDER)
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        with listen(self.folder) as listener:
            self.process = subprocess.Popen(
                [*PYTHON, "argosy.steps.launch.standby", *preload],
                env=standby_environment(),
                stdin=listener.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        assert self.process.stderr is not None
        self.read(self.process.stderr)

    def read(self, stream: IO[bytes]) -> threading.Thread:
        """Pass on what an agent says, to the end."""
        reader = threading.Thread(target=pass_on, args=(stream, Torchrun.name, self.tail), daemon=True)
        reader.start()
        return reader


class Torchrun(Agent):
    """Its own messages are passed on and the last ones kept."""

    name = "torchrun"

    def __init__(self, nproc_per_node: int, preload: Sequence[str] = (), standby: _Standby | None = None) -> None:
        """Without ``standby``: start one.

        Raises:
            OSError: it cannot be started.
        """
        super().__init__(nproc_per_node)
        self._standby = standby or _Standby(preload)
        self.ranks_from = str(self._standby.folder) if preload else ""
        self._agent: Forked | None = None
        self._reader: threading.Thread | None = None
        self.tail = self._standby.tail

    def next(self) -> Agent:
        """One that stood by for hours may have ended meanwhile, for memory for example; then there is another."""
        preload = self._standby.preload
        if self._standby.process.poll() is not None or not (self._standby.folder / SOCKET_NAME).exists():
            self._standby.process.kill()  # nobody reaches one whose folder a script cleaned
            return Torchrun(self._nproc, preload)
        self.tail.clear()
        return Torchrun(self._nproc, preload, self._standby)

    def stays(self) -> set[int]:
        """What later restarts are forked from."""
        return {self._standby.process.pid}

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """A standby that could not even import torch has ended by now: :meth:`poll` and ``tail`` tell.

        Raises:
            StepError: it lives, and nobody reaches it; the next restart has another.
        """
        argv = _arguments(assignment, self._nproc, command)
        ours, theirs = os.pipe()
        order = {"run": "torchrun", "argv": argv, "env": dict(environ), "cwd": str(folder)}
        try:
            self._agent = Forked(self._standby.folder, order, {2: theirs})
        except OSError as error:
            if self._standby.process.poll() is None:
                os.close(ours)
                os.close(theirs)
                self._standby.process.kill()
                where = f"its socket in {self._standby.folder} is not there ({error})"
                text = f"torchrun cannot be started, {where}: does the script clean its temporary folder?"
                raise StepError(Cause.UNKNOWN, text, quote=text) from error
        os.close(theirs)
        self._reader = self._standby.read(os.fdopen(ours, "rb"))

    def poll(self) -> int | None:
        """torchrun's return code, or None while it runs; the standby's when that has failed."""
        failed = self._standby.process.poll()
        if self._agent is None:
            return failed
        code = self._agent.poll()
        return failed if code is not None and failed is not None else code

    def terminate(self) -> None:
        """SIGTERM: torchrun passes it to its ranks and waits for them."""
        if self._agent is not None:
            self._agent.send_signal(signal.SIGTERM)

    def reap(self) -> None:
        """It, and the end of what it says."""
        if self._agent is not None:
            self._agent.wait()
        if self._reader is not None:
            self._reader.join(1.0)
