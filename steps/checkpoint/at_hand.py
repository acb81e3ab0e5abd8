"""A file of a checkpoint that still lies where it is restored to need not be asked of the store."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.store.durable_write import write_durably


def copied(folder: Path, file: ShardFile, part: Path) -> bool:
    """Write what lies in ``folder`` under the file's name to ``part``, durably; whether these are the committed bytes.

    A copy, hashed as it is written, and never the file itself: a process that the script left, or another node that
    has the folder on a volume, may still have that open and write to it once it was found good.
    """
    with contextlib.suppress(OSError):  # also a disk without room: the store's own try says so
        found = (folder / file.path).lstat()
        # Of a file that was written to since, the bytes are hardly the same: not worth reading.
        if stat.S_ISREG(found.st_mode) and found.st_size == file.size and file.modified_ns in (0, found.st_mtime_ns):
            return write_durably(part, folder / file.path)[0] == file.sha256
    return False
