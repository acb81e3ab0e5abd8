"""The rank's own process: started so that it cannot outlive its shim."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argosy.steps.contract import env as names

_PR_SET_PDEATHSIG = 1
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


@dataclass(frozen=True)
class RankChild:
    """A started rank: its process, the read ends of its output and of its progress pipe (non-blocking)."""

    process: subprocess.Popen[bytes]
    output: int
    progress: int


def die_with_parent() -> Callable[[], None]:
    """A ``preexec_fn``: SIGKILL when the parent dies, at once if it is dead already."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def start_rank(command: Sequence[str], environ: dict[str, str]) -> RankChild:
    """Start the rank in a process group of its own; stdout and stderr are one pipe, in order.

    Raises:
        OSError: the command cannot be started.
    """
    output, output_end = os.pipe()
    progress, progress_end = os.pipe()
    try:
        process = subprocess.Popen(
            list(command),
            env={**environ, names.PROGRESS_FD: str(progress_end)},
            stdin=subprocess.DEVNULL,
            stdout=output_end,
            stderr=output_end,
            pass_fds=(progress_end,),
            process_group=0,
            preexec_fn=die_with_parent(),
        )
    finally:
        os.close(output_end)
        os.close(progress_end)
    for handle in (output, progress):
        os.set_blocking(handle, False)
    return RankChild(process, output, progress)
