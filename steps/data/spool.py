"""Bytes that do not fit into memory, in a file without a name: it is gone when we are, however we end."""

from __future__ import annotations

import os
import tempfile
import weakref
from errno import EDQUOT, ENOSPC

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

MEMORY = 16 << 20
"""Bytes kept in memory before there is a file: small datasets need no disk."""


class Spool:
    """Append and read back; the file lies in ``$TMPDIR``. It lives as long as this object."""

    def __init__(self) -> None:
        self._small: dict[int, bytes] = {}
        self._end = 0
        self._file = -1

    def append(self, data: bytes) -> int:
        """Keep ``data``; where it begins.

        Raises:
            StepError: ``disk_full``: there is no room for it in ``$TMPDIR``.
        """
        start = self._end
        self._end += len(data)
        if self._file < 0 and self._end <= MEMORY:
            self._small[start] = data
            return start
        try:
            if self._file < 0:
                self._open()
            self._write(data, start)
        except OSError as error:
            cause = Cause.DISK_FULL if error.errno in (ENOSPC, EDQUOT) else Cause.VOLUME_MOUNT
            text = f"cannot keep the rows of a large dataset in {tempfile.gettempdir()}: {error.strerror}"
            raise StepError(cause, f"{text}; let TMPDIR name a folder with more room", quote=str(error)) from error
        return start

    def read(self, start: int, length: int) -> bytes:
        """What was appended there."""
        return self._small[start] if self._file < 0 else os.pread(self._file, length, start)

    def _open(self) -> None:
        self._file, name = tempfile.mkstemp(prefix="argosy-rows-")
        os.unlink(name)
        weakref.finalize(self, os.close, self._file)
        for start, data in self._small.items():
            self._write(data, start)
        self._small.clear()

    def _write(self, data: bytes, start: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, start)
            view, start = view[written:], start + written
