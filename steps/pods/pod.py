"""Start, watch, adopt and end a pod."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract import env as names
from argosy.steps.pods import processes, temporary

_INIT = Path(__file__).with_name("init.py")
_START_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class PodSpec:
    """What to start.

    ``env`` is the whole environment of the main process (the token and the lifeline are added); ``root`` is the
    pod's ``/`` and ``mounts`` its volumes {mount path: folder}, all made if missing; ``log`` gets stdout and
    stderr, appended; ``folder`` keeps the pod's records; ``workdir`` is a path as the process sees it.
    ``isolate`` puts the process into a mount namespace (containers that are not ours), where the mounts of
    ``read_only`` cannot be written to.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    root: Path
    token: str
    log: Path
    folder: Path
    mounts: Mapping[str, Path] = field(default_factory=dict)
    workdir: str | None = None
    isolate: bool = False
    read_only: tuple[str, ...] = ()


@dataclass(frozen=True)
class PodEnding:
    """How the main process ended: exactly one of ``exit_code`` and ``signal``; ``time`` in seconds since 1970.

    ``lost``: the pod's first process was killed too, so the time is when it was noticed.
    """

    exit_code: int | None
    signal: int | None
    time: float
    lost: bool = False


class Pod:
    """A started pod; also usable by a process that did not start it (see :func:`adopt`)."""

    def __init__(self, folder: Path, pid: int, began: int, token: str) -> None:
        self.folder = folder
        self.pid = pid
        """Process id of the pod's first process."""
        self._began = began
        self._token = token
        self._ending: PodEnding | None = None
        self._handle: int | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def fileno(self) -> int:
        """A descriptor that becomes readable when the pod has ended (pidfd), for selectors.

        Raises:
            ProcessLookupError: it has ended already.
        """
        if self._handle is None:
            self._handle = os.pidfd_open(self.pid)
        return self._handle

    def poll(self) -> PodEnding | None:
        """The ending, or None while it runs."""
        if self._ending is None:
            if self._child is not None:
                self._child.poll()
            if processes.is_alive(self.pid, self._began):
                return None
            self._ending = self._read_ending() or self._lost()
            self._close()
        return self._ending

    def signal(self, number: int) -> None:
        """Signal the main process (through the pod's first process, which forwards TERM and INT)."""
        if number in (signal.SIGTERM, signal.SIGINT):
            if processes.is_alive(self.pid, self._began):
                processes.send(self.pid, number)
            return
        with contextlib.suppress(OSError, ValueError):
            record = json.loads((self.folder / "process.json").read_text())
            if processes.is_alive(record["main"], record["main_start_time"]):
                processes.send(record["main"], number)

    def kill(self) -> PodEnding:
        """SIGKILL the whole tree, as a node's power cut would; returns when nothing of it is left that can be ended."""
        if self._ending is None:
            processes.end_all(self._tree)
        ending = self.poll()
        assert ending is not None
        return ending

    def stop(self, grace_seconds: float) -> PodEnding:
        """SIGTERM, then SIGKILL the tree after the grace period."""
        self.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.kill()

    def _tree(self) -> set[int]:
        tree = processes.carrying(names.POD_TOKEN, self._token, whole=True)
        if processes.is_alive(self.pid, self._began):
            tree |= {self.pid} | processes.descendants(self.pid, names.POD_TOKEN, self._token)
        return tree

    def _read_ending(self) -> PodEnding | None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads((self.folder / "ending.json").read_text())
            return PodEnding(record["exit_code"], record["signal"], record["time"], bool(record["engine_lost"]))
        return None

    def _lost(self) -> PodEnding:
        processes.end_all(lambda: processes.carrying(names.POD_TOKEN, self._token, whole=True))
        return PodEnding(None, int(signal.SIGKILL), time.time(), lost=True)

    def _close(self) -> None:
        temporary.unlink(self.folder)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._child is not None:
            self._child.wait()


def start(spec: PodSpec, *, lifeline: int | None = None) -> Pod:
    """Start a pod; returns when its main process has been forked.

    ``lifeline`` is the read end of a pipe (default: the inherited one named by $ARGOSY_LIFELINE_FD); when its
    write end closes the pod ends.

    Raises:
        OSError: the pod's folder cannot be written or its first process cannot be started.
    """
    if lifeline is None and os.environ.get(names.LIFELINE_FD):
        lifeline = int(os.environ[names.LIFELINE_FD])
    for folder in (spec.root, spec.folder, spec.log.parent, *spec.mounts.values()):
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
    for stale in ("ending.json", "process.json"):
        (spec.folder / stale).unlink(missing_ok=True)
    with spec.log.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_INIT)],
            env={names.POD_TOKEN: spec.token},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=() if lifeline is None else (lifeline,),
            start_new_session=True,
        )
    # Through a pipe: the environment holds credentials and the channel's token, which no file may keep.
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:
        child.stdin.write(json.dumps(_record(spec, lifeline)).encode())
    pod = _await(spec.folder, child)
    pod._child = child
    return pod


def _record(spec: PodSpec, lifeline: int | None) -> dict[str, Any]:
    environ = {**spec.env, names.POD_TOKEN: spec.token}
    if environ.get("TMPDIR") == str(spec.root / "tmp"):
        environ["TMPDIR"] = str(temporary.link(spec.folder, spec.root / "tmp"))
    if lifeline is not None:
        environ[names.LIFELINE_FD] = str(lifeline)
    package = Path(__file__).resolve().parents[2]
    return {
        "command": list(spec.command),
        "env": environ,
        "root": str(spec.root.resolve()),
        "mounts": {path: str(folder.resolve()) for path, folder in spec.mounts.items()},
        "visible": sorted({sys.prefix, sys.base_prefix, str(package), *_interpreter_folders()}),
        "token": spec.token,
        "token_name": names.POD_TOKEN,
        "log": str(spec.log.resolve()),
        "folder": str(spec.folder.resolve()),
        "workdir": spec.workdir,
        "isolate": spec.isolate,
        "read_only": list(spec.read_only),
        "lifeline": lifeline,
    }


def _interpreter_folders() -> set[str]:
    """Folders of every link from sys.executable to the interpreter: one of them may lie below a private name."""
    path = sys.executable
    folders = {os.path.dirname(path)}
    while os.path.islink(path):
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        folders.add(os.path.dirname(path))
    return folders


def _await(folder: Path, child: subprocess.Popen[bytes]) -> Pod:
    deadline = time.monotonic() + _START_SECONDS
    pause = 0.001
    while time.monotonic() < deadline:
        ended = child.poll() is not None  # asked first: a short pod may write its record and end in between
        pod = adopt(folder)
        if pod is not None:
            return pod
        if ended:
            raise OSError(f"the pod's first process ended with {child.returncode}; see its log")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    child.kill()
    child.wait()
    raise OSError(f"the pod's first process said nothing for {_START_SECONDS:.0f} s")


def adopt(folder: Path) -> Pod | None:
    """The pod whose records lie in ``folder``, running or ended; None if none was ever started there."""
    try:
        record = json.loads((folder / "process.json").read_text())
        return Pod(folder, int(record["pid"]), int(record["start_time"]), str(record["token"]))
    except (OSError, ValueError, KeyError):
        return None
