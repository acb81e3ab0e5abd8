"""Where a piece's bytes go: a part file, written in place, with the checksums of what was written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from argosy.steps.store.base import StoreError
from argosy.steps.transfer.crc import Buffer, Running
from argosy.steps.transfer.marks import Mark, open_map, write_mark
from argosy.steps.transfer.piece import Piece


class Sink:
    """The file of one piece, open for writing; ``arrived`` counts the piece's bytes that were written.

    Raises:
        StoreError: ``disk_full`` or ``s3_access`` from every verb that touches the disk.
    """

    __slots__ = ("_marks", "_parts", "arrived", "fd", "piece", "running")

    def __init__(self, parts: int, piece: Piece) -> None:
        """``parts``: descriptor of the parts folder."""
        self.piece, self._parts = piece, parts
        self.arrived = 0
        self.running = Running(piece.checksum) if piece.checksum else Running()
        self.fd = self._marks = -1
        try:
            if piece.mark >= 0:
                self._marks = open_map(parts, piece.part)
            self.fd = os.open(piece.part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666, dir_fd=parts)
        except OSError as error:
            self.abandon()
            raise self._refused(error) from error

    def write(self, data: Buffer) -> None:
        """The piece's next bytes."""
        self.running.update(data)
        at, length = self.piece.start + self.arrived, len(data)
        try:
            written = os.pwrite(self.fd, data, at)
            while written < length:
                written += os.pwrite(self.fd, memoryview(data)[written:], at + written)
            self.arrived += length
            if self._marks >= 0:
                # After the bytes: whoever resumes reads them again and compares.
                write_mark(self._marks, self.piece.mark, Mark(self.piece.start, self.arrived, self.running.own))
        except OSError as error:
            raise self._refused(error) from error

    def restart(self) -> None:
        """Forget what came: the next bytes are the piece's first."""
        self.arrived = 0
        self.running = Running(self.piece.checksum) if self.piece.checksum else Running()

    def close(self) -> None:
        """Close the file; only then is everything written that a quota lets in."""
        fds, self.fd, self._marks = (self._marks, self.fd), -1, -1
        for fd in fds:
            try:
                if fd >= 0:
                    os.close(fd)
            except OSError as error:
                raise self._refused(error) from error

    def abandon(self) -> None:
        """Close the file, whatever the disk says."""
        with contextlib.suppress(StoreError):
            self.close()

    def _refused(self, error: OSError) -> StoreError:
        folder = Path(f"/proc/self/fd/{self._parts}")
        with contextlib.suppress(OSError):
            folder = folder.readlink()
        return StoreError.of_disk("write", folder / self.piece.part, error)
