"""A node's part of Ray: ``python -m argosy.steps.launch.ray_node RAY ADDRESS -- COMMAND...``, in the place of a rank.

Node 0 starts Ray's head, waits until the others have joined and runs the command, a script of Ray Train, as the
driver; its end is the end of all. The others start Ray and wait for that. Ray outlives none of these processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from types import FrameType
from typing import Final

from argosy.steps.address import with_port
from argosy.steps.child_python import die_with_parent
from argosy.steps.contract import env as names
from argosy.steps.evidence.cgroup import oom_kills
from argosy.steps.launch.ports import free_port
from argosy.steps.launch.ray_meeting import END, FIRST, Guest, Host
from argosy.steps.launch.ray_workers import Workers
from argosy.steps.pods import processes

KEY: Final = "ARGOSY_RAY_KEY"
"""Environment variable with what this restart's nodes know; Ray has it as its token."""
_LOOK_SECONDS = 0.1
_SMALLEST_STORE = 75 << 20
"""Bytes; Ray refuses less."""
_STARTED = "Ray runtime started"
_TAIL_LINES = 40
_NOT_RAYS = (
    # Of ranks: Ray Train tells its workers their own, and the driver is none.
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TF_CONFIG"),
    # Of the Ray that KubeRay would have started.
    *("RAY_ADDRESS", "RAY_NODE_TYPE_NAME", "RAY_CLOUD_INSTANCE_ID", "RAY_USAGE_STATS_KUBERAY_IN_USE"),
)


class Ended(Exception):
    """Its text says why this node ends, and ``code`` how."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class RayProcess:
    """``ray start``, which stays in the foreground; what it started ends with it."""

    def __init__(self, program: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it in a folder of its own; its sockets need a short path, as the pod's temporary folder has."""
        folder = Path(gettempdir()) / "ray"
        shutil.rmtree(folder, ignore_errors=True)
        options = {
            "temp-dir": folder,
            # Any: nodes of one machine would take each other's.
            "min-worker-port": 0,
            "max-worker-port": 0,
        }
        given = [f"--{name}={value}" for name, value in options.items()]
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.started = threading.Event()
        self._process = subprocess.Popen(
            [program, "start", "--block", "--disable-usage-stats", *given, *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def check(self) -> None:
        """Raise Ended, with what Ray said last, when it has ended by itself."""
        if (code := self._process.poll()) is not None:
            self._reader.join(1.0)
            said = "\n".join(self.tail)
            raise Ended(f"{said}\nargosy: Ray has ended by itself on this node with exit code {code}")

    def await_start(self) -> None:
        """Return when it runs; Ended when it never will."""
        while not self.started.wait(_LOOK_SECONDS):
            self.check()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            self.tail.append(line)
            if _STARTED in line:
                self.started.set()


class RayNode:
    """This node, from its start to its end."""

    def __init__(self, program: str, host: str, command: Sequence[str]) -> None:
        self._program, self._host, self._command = program, host, command
        self._key = os.environ.pop(KEY)
        self._rank, self._nnodes = int(os.environ["GROUP_RANK"]), int(os.environ["GROUP_WORLD_SIZE"])
        self._meeting = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self._environ = {name: value for name, value in os.environ.items() if name not in _NOT_RAYS}
        if "RAY_AUTH_MODE" not in os.environ:  # who reaches Ray's ports may run anything
            self._environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self._key}
        # Of /dev/shm Ray would take all but a twentieth, and NCCL and data loaders need it too.
        half = max(_SMALLEST_STORE, shutil.disk_usage("/dev/shm").free // 2)
        self._environ.setdefault("RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES", str(half))
        self._driver: subprocess.Popen[bytes] | None = None
        self._oom_kills = oom_kills()

    def run(self) -> int:
        """The exit code of this node's rank."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            return self._join() if self._rank else self._lead()
        except (Ended, ConnectionError) as error:
            print(error, flush=True)
            return error.code if isinstance(error, Ended) else 1
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            processes.kill_all(lambda: processes.descendants(os.getpid()))

    def _start(self, *words: str) -> RayProcess:
        own = [f"--node-ip-address={self._host}"] if self._host else []
        # Workers are no children of ours: they open the pipe that we hold.
        pipe = {names.PROGRESS_FD: f"/proc/{os.getpid()}/fd/{os.environ[names.PROGRESS_FD]}"}
        return RayProcess(self._program, [*own, *words], self._environ | pipe)

    def _lead(self) -> int:
        port = free_port(self._host)
        ray = self._start("--head", f"--port={port}", "--include-dashboard=false")
        ray.await_start()
        address = with_port(self._host, port)
        host, code = Host(self._meeting, self._key, self._nnodes, address), 1
        try:
            while host.listen(_LOOK_SECONDS):
                ray.check()
            code = self._drive(address, ray, host)
            if code and (first := host.first()) is not None and first[0] == 0:
                print(self._lost(first[1]), flush=True)
        finally:
            host.close(well=code == 0)
        return code

    def _drive(self, address: str, ray: RayProcess, host: Host) -> int:
        # Each worker's every line, once and at once: steps are read from them, and what ended a worker.
        told = {"RAY_DEDUP_LOGS": "0", "RAY_COLOR_PREFIX": "0", **self._environ, "RAY_ADDRESS": address}
        self._driver = subprocess.Popen(
            self._command,
            env=told,
            stdin=subprocess.DEVNULL,
            pass_fds=(int(os.environ[names.PROGRESS_FD]),),
            preexec_fn=die_with_parent(),
        )
        workers = Workers()
        while (code := self._driver.poll()) is None:
            host.listen(_LOOK_SECONDS)
            for pid in workers.ended():
                host.lost(0, pid)
            ray.check()
        return code if code >= 0 else 128 - code

    def _join(self) -> int:
        guest = Guest(self._meeting, self._key, self._rank)
        ray = self._start(f"--address={guest.address}")
        ray.await_start()
        guest.joined()
        workers = Workers()
        try:
            while (said := guest.hear(_LOOK_SECONDS)) is None:
                for pid in workers.ended():
                    guest.lost(pid)
                ray.check()
        except ConnectionError as error:
            raise Ended(f"argosy: Ray's head at {guest.address} has gone: {error}") from error
        if said.startswith(FIRST):
            raise Ended(self._lost(int(said.split()[1])))
        return 0 if said == END else 1

    def _lost(self, pid: int) -> str:
        """What is known of the worker that ended first: its parent is Ray's, so nobody tells how."""
        if killed := oom_kills() - self._oom_kills:
            return f"argosy: the pod's control group counts oom_kill {killed} since this rank was started"
        return f"argosy: process {pid}, a worker of Ray on this node, was the first to end, and nobody says why"

    def _on_sigterm(self, number: int, _frame: FrameType | None) -> None:
        if self._driver is not None and self._driver.poll() is None:
            self._driver.send_signal(number)  # it may save, and its end is ours
        else:
            raise Ended("argosy: told to end", 128 + number)


def main() -> int:
    """Run this node to its end; its exit code."""
    program, host, _, *command = sys.argv[1:]
    return RayNode(program, host, command).run()


if __name__ == "__main__":
    sys.exit(main())
