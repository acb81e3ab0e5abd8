"""The real ``argo lint`` of Argo 4.0.7, where the machine has it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.cluster.binaries import absent, find
from tests.cluster.pin import pins

VERSION = pins()["argo-workflows"].version
_BATCH = 60


@cache
def binary() -> str:
    """The path of ``argo``: from PATH, or the one of the test cluster; "" where it would have to be built."""
    path = shutil.which("argo")
    if path and VERSION in subprocess.run([path, "version"], capture_output=True, text=True).stdout:
        return path
    pin = pins()["argo-workflows"]
    folder = None if absent({pin.name: pin}) else find(pin)
    return str(folder / "argo") if folder else ""


_UNREADABLE = re.compile(r"failed to parse YAML from file ([^:]+): (.*)")


def verdicts(files: Iterable[Path], library: Path) -> dict[Path, str]:
    """Why the real one refuses each of ``files``, "" where it takes it; ``library`` holds their WorkflowTemplates."""
    found: dict[Path, str] = {}
    waiting = list(files)
    while waiting:
        # A file that does not decode ends the whole call; the others are asked again.
        batch = waiting[:_BATCH]
        call = [binary(), "lint", "--offline", "--strict", "--kinds=workflows", "-o", "simple"]
        done = subprocess.run([*call, *map(str, batch), str(library)], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        unreadable = _UNREADABLE.search(said)
        if unreadable:
            found[Path(unreadable[1])] = unreadable[2]
            waiting.remove(Path(unreadable[1]))
            continue
        del waiting[:_BATCH]
        lines = [line for line in said.splitlines() if ".yaml: " in line]
        assert done.returncode == (1 if lines else 0), said
        found |= dict.fromkeys(batch, "")
        for line in lines:
            path, _, reason = line.partition(": ")
            found[Path(path)] = re.sub(r"placeholder-\d+", "placeholder-N", reason)
    return found
