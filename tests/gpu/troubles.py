"""No part of ``make gpu``: cases that go wrong, by which the suite's own running is tested."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.gpu.case import Case, Part, Skipped


def works(case: Case) -> None:
    case.figure("speed", 2.5, "GB/s", bar=">= 2", held=True)
    case.figure("what was known", str(sorted(case.known)))


def misses(case: Case) -> None:
    case.figure("speed", 1.5, "GB/s", bar=">= 2", held=False)


def crashes(case: Case) -> None:
    case.figure("before the crash", 1)
    print("the last words", flush=True)
    os.abort()


def hangs(case: Case) -> None:
    """With a child in a session of its own that holds the pipe."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(os.environ["ARGOSY_GPU_RESULTS"], "child").write_text(str(child.pid))
    case.figure("before the hang", 1)
    time.sleep(600)


def once(case: Case) -> None:
    """Fails the first time."""
    mark = Path(os.environ["ARGOSY_GPU_RESULTS"], "once")
    if not mark.exists():
        mark.touch()
        raise ValueError("the first time it fails")
    case.figure("second time", 1)


def cannot(case: Case) -> None:
    raise Skipped("no disk of a petabyte here")


PART = Part(
    {"works": works, "misses": misses, "crashes": crashes, "hangs": hangs, "once": once, "cannot": cannot}, seconds=10
)
