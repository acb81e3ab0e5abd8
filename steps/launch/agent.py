"""torchrun: one fresh agent per restart, and everything below it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from argosy.steps.contract import env
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.rank_child import die_with_parent
from argosy.steps.pods import processes

_TAIL_LINES = 60
_LOOK_SECONDS = 0.05
_PYTHON = [sys.executable, "-P", "-m"]
"""-P: a file of the user's named like a module of ours or of torch must not shadow it."""


def torchrun_arguments(assignment: Assignment, nproc_per_node: int, command: Sequence[str]) -> list[str]:
    """torchrun's arguments: static rendezvous, ranks from the channel, no restarts of its own, our shim as the rank."""
    options = {
        "nnodes": assignment.nnodes,
        "node-rank": assignment.node_rank,
        "nproc-per-node": nproc_per_node,
        "master-addr": assignment.master_addr,
        "master-port": assignment.master_port,
        "max-restarts": 0,
        "rdzv-id": f"{assignment.run_id}-{assignment.attempt}-{assignment.restart}",
    }
    shim = [*_PYTHON, "argosy.steps.launch.rank", "--", *command]
    return [*(f"--{name}={value}" for name, value in options.items()), "--no-python", *shim]


def adopt_orphans() -> None:
    """Make every orphan below this process its child: torchrun starts ranks in sessions of their own."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _writers() -> set[int]:
    """Processes that still store what a rank has saved: a rank that SIGTERM ended may have left a whole checkpoint."""
    return processes.carrying(env.CHECKPOINT_WRITER, "1", whole=True) & processes.descendants(os.getpid())


class Agent:
    """One torchrun: started on standby, begun once; its own messages are passed on and the last ones kept."""

    def __init__(self) -> None:
        """Start it on standby.

        Raises:
            OSError: it cannot be started.
        """
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._process = subprocess.Popen(
            [*_PYTHON, "argosy.steps.launch.standby"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self._reader = threading.Thread(target=self._read, name="torchrun", daemon=True)
        self._reader.start()

    def begin(self, arguments: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Run torchrun with these arguments, in this environment and working directory.

        An agent that could not even import torch has ended by now: :meth:`poll` and ``tail`` tell.
        """
        order = {"argv": list(arguments), "env": dict(environ), "cwd": str(folder)}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.close()

    def poll(self) -> int | None:
        """Its return code, or None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """SIGTERM: torchrun passes it to its ranks and waits for them."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def end(self, grace_seconds: float) -> None:
        """SIGTERM, wait ``grace_seconds`` for ranks and their writers, then SIGKILL everything below this process."""
        self.terminate()
        deadline = time.monotonic() + grace_seconds
        while (self._process.poll() is None or _writers()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        processes.kill_all(lambda: processes.descendants(os.getpid()))
        self._process.wait()
        self._reader.join(1.0)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for raw in self._process.stderr:
            line = raw.decode("utf-8", "replace").rstrip()
            self.tail.append(line)
            with contextlib.suppress(OSError):
                os.write(1, f"[torchrun] {line}\n".encode())
