"""Start a module of ours in a process of its own, which finds what this process finds."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def child_command(module: str, *words: object, bare: bool = False) -> list[str]:
    """The argv that runs ``module``.

    -P: a file of the user's, beside the script or in the working directory, must not be imported in place of a library.
    ``bare`` (-S): what the environment runs at the start of each Python was run by this process, and takes up to 15 ms.
    """
    return [sys.executable, "-P", *(["-S"] if bare else []), "-m", module, *map(str, words)]


def child_environ(**more: str) -> dict[str, str]:
    """This process's environment; argosy may have been found by a hook, as of an editable install."""
    known = sys.path if sys.flags.safe_path else sys.path[1:]
    paths = [*filter(None, known), str(Path(__file__).absolute().parents[2])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def die_with_parent() -> Callable[[], None]:
    """A ``preexec_fn``: SIGKILL when the parent dies, at once if it is dead already."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare
