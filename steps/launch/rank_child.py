"""The rank's own process: started so that it cannot outlive its shim."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract import env as names

_NOT_FOUND, _NOT_RUNNABLE = 127, 126


@dataclass(frozen=True)
class RankChild:
    """A started rank: its process, the read ends of its output and of its progress pipe (non-blocking)."""

    process: subprocess.Popen[bytes]
    output: int
    progress: int


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
