"""A script with torch, in a process that was forked from one which has imported it: that takes four seconds."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import sys
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torch._dynamo"])


def run_script(path: Path) -> str:
    """What ``python PATH`` prints in its own folder.

    Raises:
        AssertionError: it failed.
    """
    said = path.with_suffix(".said")
    child = _FORKS.Process(target=_run, args=(path, said))
    child.start()
    child.join(120)
    assert child.exitcode == 0, said.read_text()
    return said.read_text()


def _run(path: Path, said: Path) -> None:
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    with said.open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        runpy.run_path(str(path), run_name="__main__")
