"""A file of a checkpoint that still lies where it is restored to, or near it, need not be asked of the store."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.store.durable_write import write_durably

Near = Callable[[ShardFile, Path], bool]
"""Writes a file to a path, durably; whether these are the committed bytes."""


def nobody(file: ShardFile, part: Path) -> bool:
    """There is only the store."""
    return False


def copied(folder: Path, file: ShardFile, part: Path) -> bool:
    """Write what lies in ``folder`` under the file's name to ``part``, durably; whether these are the committed bytes.

    A copy, hashed as it is written, and never the file itself: a process that the script left, or another node that
    has the folder on a volume, may still have that open and write to it once it was found good.
    """
    with contextlib.suppress(OSError):  # also a disk without room: the store's own try says so
        if untouched((folder / file.path).lstat(), file.size, file.modified_ns):
            return write_durably(part, folder / file.path)[0] == file.sha256
    return False


def untouched(found: os.stat_result, size: int, modified_ns: int) -> bool:
    """Whether a file is worth reading: where it was written to since, the bytes are hardly the same."""
    return stat.S_ISREG(found.st_mode) and found.st_size == size and modified_ns in (0, found.st_mtime_ns)
