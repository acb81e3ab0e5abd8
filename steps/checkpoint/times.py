"""The times of restored files: a script that goes on from its newest file must find the one that was newest."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from argosy.steps.checkpoint.manifest import ShardFile

_TICKS_SECONDS = 1.0
"""Longest time spent, for one restore, on waiting until the file system's clock has moved on between two files."""


def restore_times(into: Path, files: Iterable[ShardFile]) -> None:
    """Set the modification times of files below ``into``, and of the folders that hold them, oldest first.

    The order is for scripts that compare ``getctime``, which nobody can set: it is the time of this very change.
    """
    times: dict[str, int] = {}
    for file in files:
        if not file.modified_ns:
            continue
        times[file.path] = file.modified_ns
        for folder in PurePosixPath(file.path).parents:
            times[str(folder)] = max(times.get(str(folder), 0), file.modified_ns)
    times.pop(".", None)
    deadline = time.monotonic() + _TICKS_SECONDS
    before = changed = 0
    # A file system that keeps no times is no reason to fail: the bytes are there.
    with contextlib.suppress(OSError):
        for name, modified in sorted(times.items(), key=lambda item: item[1]):
            path = into / name
            os.utime(path, ns=(modified, modified))
            while modified > before and path.stat().st_ctime_ns <= changed and time.monotonic() < deadline:
                os.utime(path, ns=(modified, modified))
            before, changed = modified, path.stat().st_ctime_ns
