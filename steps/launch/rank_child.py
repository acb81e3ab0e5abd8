"""The rank's own process: started so that it cannot outlive its shim."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract import env as names
from argosy.steps.launch.forked import Forked

_PROGRESS = 100
"""Number of a forked rank's progress pipe; nothing that was imported holds so many files."""


@dataclass(frozen=True)
class RankChild:
    """A started rank: its process, the read ends of its output and of its progress pipe (non-blocking)."""

    process: subprocess.Popen[bytes] | Forked
    output: int
    progress: int


def start_rank(command: Sequence[str], environ: dict[str, str], ranks_from: str = "") -> RankChild:
    """Start the rank in a process group of its own; stdout and stderr are one pipe, in order.

    ``ranks_from``: folder of the standby of which it is a fork, if it is a script or a module for this very Python.

    Raises:
        OSError: the command cannot be started.
    """
    output, output_end = os.pipe()
    progress, progress_end = os.pipe()
    try:
        process = _process(command, environ, ranks_from, output_end, progress_end)
    finally:
        os.close(output_end)
        os.close(progress_end)
    for handle in (output, progress):
        os.set_blocking(handle, False)
    return RankChild(process, output, progress)


def _process(
    command: Sequence[str], environ: dict[str, str], ranks_from: str, output: int, progress: int
) -> subprocess.Popen[bytes] | Forked:
    environ = {**environ, names.PROGRESS_PIPE: str(os.fstat(progress).st_ino)}
    if ranks_from and command[0] == sys.executable and (command[1] == "-m" or command[1].endswith(".py")):
        env = {**environ, names.PROGRESS_FD: str(_PROGRESS)}
        order = {"run": "python", "argv": command[1:], "env": env, "cwd": os.getcwd()}
        return Forked(Path(ranks_from), order, {1: output, 2: output, _PROGRESS: progress})
    return subprocess.Popen(
        list(command),
        env={**environ, names.PROGRESS_FD: str(progress)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(progress,),
        process_group=0,
        preexec_fn=die_with_parent(),
    )
