"""What a rank prints: passed on with its number, kept in a file, and the last lines remembered."""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from pathlib import Path

from argosy.steps.contract.trouble import DISK_IS_FULL
from argosy.steps.launch.wire import LineBuffer

TAIL_LINES = 60
TAIL_CHARACTERS = 1000
LOG_BYTES = 64 << 20
"""A rank's log file is begun anew when it has this size, the one before is kept."""
_FULL_BYTES = 1 << 20
_NAMELESS = re.compile(r"(No space left on device|Disk quota exceeded)(?!:? ?['\"/])")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class RankOutput:
    """Sink of one rank's stdout and stderr."""

    def __init__(self, rank: int, folder: Path) -> None:
        """``folder`` gets ``rank-R.log``."""
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._prefix = f"[rank {rank}] ".encode()
        self._path = folder / f"rank-{rank}.log"
        self._log = self._path.open("wb", buffering=0)
        self._size = 0
        self._lines = LineBuffer()

    def feed(self, data: bytes) -> list[str]:
        """Take bytes; the lines they completed, as text."""
        self._keep(data)
        return [self._line(raw) for raw in self._lines.feed(data)]

    def redrawn(self) -> str:
        """The state of a progress bar that redraws its line without ever ending it; "" for none."""
        rest = self._lines.rest()
        shown = rest.rstrip(b"\r").rpartition(b"\r")[2] if b"\r" in rest else b""
        return _ESCAPES.sub("", shown.decode("utf-8", "replace"))

    def finish(self) -> list[str]:
        """The unfinished last line; closes the log."""
        last = [self._line(raw) for raw in self._lines.flush()]
        if any(_NAMELESS.search(line) for line in self.tail) and (disk := _full_disk()):
            self.say(f"{DISK_IS_FULL}{disk}")
        self._log.close()
        return last

    def say(self, text: str) -> None:
        """A line of ours among the rank's: where it is quoted, it can be found."""
        raw = text.encode()
        if not self._log.closed:
            self._keep((b"\n" if self._lines.rest() else b"") + raw + b"\n")
        self._line(raw)

    def _keep(self, data: bytes) -> None:
        try:
            if self._size + len(data) > LOG_BYTES:
                self._log.close()
                with contextlib.suppress(FileNotFoundError):  # no new one could be opened, the last time
                    self._path.replace(self._path.with_suffix(".log.1"))
                self._log = self._path.open("wb", buffering=0)
                self._size = 0
            self._log.write(data)
            self._size += len(data)
        except (OSError, ValueError):
            pass  # a full disk is the rank's to report; its output still goes to the pod's log

    def _line(self, raw: bytes) -> str:
        # Of a progress bar that redraws its line only the last state is kept.
        shown = raw.rstrip(b"\r").rsplit(b"\r", 1)[-1]
        text = _ESCAPES.sub("", shown.decode("utf-8", "replace"))
        self.tail.append(text[:TAIL_CHARACTERS])
        write_all(1, self._prefix + shown + b"\n")
        return text


def _full_disk() -> str:
    """Of those that a script writes to without being told; "" where none of them is full."""
    for where in (".", os.environ.get("TMPDIR", "/tmp")):
        try:
            folder, told = os.path.abspath(where), os.statvfs(where)
        except OSError:  # the working directory is gone, for one
            continue
        if told.f_flag & os.ST_RDONLY:  # an image that nobody writes to has no room either
            continue
        left, size = told.f_bavail * told.f_frsize, told.f_blocks * told.f_frsize
        if left < _FULL_BYTES or (told.f_files and not told.f_favail):
            return f"{folder}: {left} of {size} bytes and {told.f_favail} of {told.f_files} files are left"
    return ""


def write_all(handle: int, data: bytes) -> None:
    """Write all of ``data``; a closed reader is no error, the rank goes on."""
    try:
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        pass
