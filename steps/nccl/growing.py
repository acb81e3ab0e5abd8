"""A text file that another process is writing: its new lines, a bounded amount at a time."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

READ_BYTES: Final = 1 << 20
LINE_BYTES: Final = 1 << 14


class GrowingFile:
    """Reads on where it stopped; a file that was replaced or begun anew is read from its beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._inode = 0
        self._rest = b""
        self._emptied = False

    def read(self) -> tuple[list[str], bool]:
        """(new whole lines, whether there may be more to read at once); a file that is not there has none."""
        try:
            with self._path.open("rb") as file:
                state = os.fstat(file.fileno())
                self._begin_anew(state)
                file.seek(self._offset)
                data = file.read(READ_BYTES)
        except OSError:
            return [], False
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [raw[:LINE_BYTES].decode("utf-8", "replace").rstrip("\r") for raw in lines], len(data) == READ_BYTES

    def keep_small(self, limit: int) -> None:
        """Give the disk's blocks of what was read back, once it is more than ``limit`` bytes.

        The writer holds the file open and goes on at its own position: the file has a hole then, and so many bytes
        less on disk.
        """
        with contextlib.suppress(OSError):
            if self._path.stat().st_blocks * 512 > limit:
                os.truncate(self._path, 0)
                self._emptied = True

    def _begin_anew(self, state: os.stat_result) -> None:
        replaced = self._inode not in (0, state.st_ino)
        shorter = state.st_size < self._offset and not self._emptied
        if replaced or shorter:
            self._offset, self._rest = 0, b""
        self._emptied = self._emptied and not replaced
        self._inode = state.st_ino
