"""``python -m MODULE`` as a fork of a process that has imported what it needs: a start costs its imports, once.

A fork is a process of its own with its argv, environment, working directory, output and end, and dies of signals.
That ``python -m`` finds all it imports is seen wherever the engine starts pods: tests/chain, tests/examples.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from argosy.steps.child_python import die_with_parent
from argosy.steps.launch import standby
from argosy.steps.launch.forked import Forked
from argosy.steps.launch.wire import listen

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("snapshot", "admit", "stage", "evaluate", "gate", "promote", "finalize")
OTHERS = (
    "argosy.workflows.compile", "argosy.workflows.cli.lint.verb", "argosy.workflows.cli.run",
    "botocore.session", "obstore.store",
)  # fmt: skip


class Started(Forked):
    """As a Popen with pipes for its text is asked."""

    def __init__(self, module: str, argv: list[str], *, env: dict[str, str] | None = None, cwd: Path | None = None):
        self.args = [module, *argv]
        pipes = [os.pipe() for _ in range(2)]
        order = {"run": "python", "argv": ["-m", module, *argv], "env": dict(os.environ if env is None else env)}
        super().__init__(_served(), {**order, "cwd": str(cwd or os.getcwd())}, {1: pipes[0][1], 2: pipes[1][1]})
        self._said = ["", ""]
        self._readers = [threading.Thread(target=self._read, args=(at, pipes[at][0])) for at in range(2)]
        for reader, (_, written) in zip(self._readers, pipes, strict=True):
            os.close(written)
            reader.start()

    def _read(self, at: int, pipe: int) -> None:
        with open(pipe, encoding="utf-8", errors="replace") as stream:
            self._said[at] = stream.read()

    def kill(self) -> None:
        self.send_signal(9)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        for reader in self._readers:
            reader.join(timeout)
            if reader.is_alive():
                self.kill()
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait()
        return self._said[0], self._said[1]


def run(
    module: str, *argv: str, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """To its end."""
    started = Started(module, list(argv), env=env, cwd=cwd)
    out, err = started.communicate(timeout)
    assert started.returncode is not None
    return subprocess.CompletedProcess(started.args, started.returncode, out, err)


def argosy(cwd: Path, *argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """``argosy ARGV`` in a folder."""
    return run("argosy.workflows.cli.main", *argv, cwd=cwd, **more)


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
    sys.modules.pop(json.loads(client.line)["argv"][1], None)  # as of ``python -m``, which would else warn
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
