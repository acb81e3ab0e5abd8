"""torchrun as the agent, on standby until it is needed."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.agent import PYTHON, Agent, pass_on, shim
from argosy.steps.pods import processes


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


class Torchrun(Agent):
    """Its own messages are passed on and the last ones kept."""

    name = "torchrun"

    def __init__(self, nproc_per_node: int) -> None:
        """Start it on standby.

        Raises:
            OSError: it cannot be started.
        """
        super().__init__(nproc_per_node)
        self._process = subprocess.Popen(
            [*PYTHON, "argosy.steps.launch.standby"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self._reader = threading.Thread(target=pass_on, args=(self._process.stderr, self.name, self.tail), daemon=True)
        self._reader.start()

    def next(self) -> Agent:
        """One that waited for hours may have ended meanwhile, for memory for example; then there is another."""
        if self._next is not None and self._next.poll() is not None:
            self._next = None
        return super().next()

    def own(self) -> set[int]:
        """It, and what an import may start."""
        return {self._process.pid} | processes.descendants(self._process.pid)

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """One that could not even import torch has ended by now: :meth:`poll` and ``tail`` tell."""
        arguments = _arguments(assignment, self._nproc, command)
        order = {"argv": arguments, "env": dict(environ), "cwd": str(folder)}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.close()

    def poll(self) -> int | None:
        """torchrun's return code, or None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """SIGTERM: torchrun passes it to its ranks and waits for them."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def reap(self) -> None:
        """It, and the end of what it says."""
        self._process.wait()
        self._reader.join(1.0)
