"""``python -m MODULE`` as a fork of a process that has imported what it needs: a start costs its imports, once.

A fork is a process of its own with its argv, environment, working directory, output and end, and dies of signals.
That ``python -m`` finds all it imports shows where the engine starts pods: tests/chain, tests/examples, tests/cluster.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from argosy.steps.launch import standby
from argosy.steps.launch.forked import Forked
from argosy.steps.launch.wire import listen

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("snapshot", "admit", "stage", "train", "evaluate", "gate", "promote", "finalize", "launch.node")
OTHERS = (
    "argosy.workflows.compile", "argosy.workflows.cli.lint.verb", "argosy.workflows.cli.run",
    "botocore.session", "obstore.store",
)  # fmt: skip


class Started(Forked):
    """As a Popen is asked: of its text when no ``log`` takes that."""

    def __init__(self, *argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, log: int = -1):
        """``argv``: what Python gets, a script's path or -m and a module first."""
        self.args = argv
        self._said = ["", ""]
        pipes = [os.pipe() for _ in range(2)] if log < 0 else []
        order = {"run": "python", "argv": argv, "env": dict(os.environ if env is None else env)}
        handles = {at: pipes[at - 1][1] if pipes else log for at in (1, 2)}
        super().__init__(_served(), {**order, "cwd": str(cwd or os.getcwd())}, handles)
        self._readers = [threading.Thread(target=self._read, args=(at, pipe)) for at, (pipe, _) in enumerate(pipes)]
        for reader, (_, written) in zip(self._readers, pipes, strict=True):
            os.close(written)
            reader.start()

    def _read(self, at: int, pipe: int) -> None:
        with open(pipe, encoding="utf-8", errors="replace") as stream:
            self._said[at] = stream.read()

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> int:
        if self.poll() is None and timeout is not None:
            until = time.monotonic() + timeout
            while self.poll() is None:
                if not select.select([self], [], [], max(0.0, until - time.monotonic()))[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
        return super().wait()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        for reader in self._readers:
            reader.join(timeout)
            if reader.is_alive():
                self.kill()
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait()
        return self._said[0], self._said[1]


def argosy(cwd: Path, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``argosy ARGV`` in a folder, to its end."""
    started = Started("-m", "argosy.workflows.cli.main", *argv, env=env, cwd=cwd)
    out, err = started.communicate(300)
    return subprocess.CompletedProcess(started.args, started.wait(), out, err)


@cache
def _served() -> Path:
    """The folder in which the process that is forked listens; it ends with this one."""
    folder = tempfile.TemporaryDirectory()
    with listen(Path(folder.name)) as listener:
        server = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdin=listener.fileno(), stdout=subprocess.DEVNULL,
            preexec_fn=die_with_parent(),
        )  # fmt: skip

    @atexit.register
    def end() -> None:
        server.kill()
        server.wait()
        with contextlib.suppress(OSError):
            folder.cleanup()

    return Path(folder.name)


def main() -> None:
    """In the process that is forked."""
    sys.path.pop(0)
    for module in (*(f"argosy.steps.{name}" for name in STEPS), *OTHERS):
        importlib.import_module(module)
    gc.freeze()
    client = standby._Server().serve()
    module = sys.modules.get(json.loads(client.line)["argv"][1])
    if module is not None and not hasattr(module, "__path__"):
        del sys.modules[module.__name__]  # ``python -m`` warns of one that is there
    code: object = 0
    try:
        standby._become(client)()
    except SystemExit as ending:
        code = ending.code
    # As Python ends, but for taking its modules apart: that would copy every page of the process they were forked in.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
