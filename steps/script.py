"""Run a user's script as a child: its output shown and its last lines kept, never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, Self

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

TAIL_LINES = 60
_END_SECONDS = 10.0
_MAX_LINE = 1 << 16


@dataclass(frozen=True)
class ScriptEnding:
    """How a script ended; exactly one of ``exit_code`` and ``signal`` is set. ``tail``: last lines, oldest first."""

    exit_code: int | None
    signal: int | None
    tail: tuple[str, ...]

    @property
    def last_line(self) -> str:
        """The last line that is not empty, or ""."""
        return next((line for line in reversed(self.tail) if line.strip()), "")


def run_script(command: Sequence[str], env: Mapping[str, str], cwd: Path, timeout_seconds: float) -> ScriptEnding:
    """Run until it ends; stdout and stderr go to our stdout.

    Raises:
        StepError: ``launcher_usage`` when it cannot start, ``deadline_exceeded`` after ``timeout_seconds``,
            ``sigterm`` when this process is told to stop. The script's whole process group is gone then.
    """
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with _Stop() as stop:
        child = _start(command, env, cwd)
        reader = threading.Thread(target=_copy, args=(child, tail), name="script-output", daemon=True)
        reader.start()
        try:
            stop.arm()
            code = child.wait(timeout_seconds or None)
        except subprocess.TimeoutExpired as error:
            text = f"the script did not end within {timeout_seconds:.0f} s"
            raise StepError(Cause.DEADLINE_EXCEEDED, text, quote=_last(tail)) from error
        finally:
            stop.disarm()
            _end_group(child)
            reader.join(_END_SECONDS)
    return ScriptEnding(code if code >= 0 else None, -code if code < 0 else None, tuple(tail))


def _start(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except OSError as error:
        raise StepError(Cause.LAUNCHER_USAGE, f"cannot start {command[0]} in {cwd}: {error.strerror}") from error


def _copy(child: subprocess.Popen[bytes], tail: deque[str]) -> None:
    assert child.stdout is not None
    while raw := child.stdout.readline(_MAX_LINE):
        line = raw.decode(errors="replace").rstrip("\n")
        tail.append(line)
        with contextlib.suppress(OSError):
            print(line, flush=True)


def _last(tail: deque[str]) -> str:
    return tail[-1] if tail else ""


class _Stop:
    """SIGTERM while a script runs: it interrupts the wait, never the moment between its start and our knowing it."""

    def __enter__(self) -> Self:
        self._asked = self._armed = False
        self._before = signal.signal(signal.SIGTERM, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def arm(self) -> None:
        """From now on the signal raises; one that came before raises now."""
        self._armed = True
        if self._asked:
            self._raise()

    def disarm(self) -> None:
        """The script is being ended: a further signal must not interrupt that."""
        self._armed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._armed:
            self._raise()

    def _raise(self) -> NoReturn:
        raise StepError(Cause.SIGTERM, "stopped from outside while the script ran")


def _end_group(child: subprocess.Popen[bytes]) -> None:
    # Also after a normal end: what the script left running would hold the pod's memory and its output pipe.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def python_command(script: str, module: str, args: Sequence[str]) -> list[str]:
    """``python script args`` or ``python -m module args`` with the interpreter that runs us."""
    return [sys.executable, *(["-m", module] if module else [script]), *args]
