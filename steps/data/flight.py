"""One object under way: its pieces, their checksums, and whether the whole is what it should be."""

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

from argosy.steps.data.kernel import allocate
from argosy.steps.data.manifest import DataObject
from argosy.steps.data.parts import RESUMED_BYTES
from argosy.steps.data.state_files import FILE
from argosy.steps.transfer import crc
from argosy.steps.transfer.marks import gaps, verified, write_map
from argosy.steps.transfer.piece import RANGE_BYTES, WHOLE_BYTES, Arrived, Piece

_READ = 1 << 20


class Ask(NamedTuple):
    """A range to fetch: which bytes, and the slot of the part's map that tells how far it has come (-1 none)."""

    start: int
    length: int
    slot: int


class Flight:
    """Made when an object's turn comes. ``part`` is its file while it comes, ``chunk`` says whose rows it will join.

    ``expected``: checksum of the whole, as the manifest or the store knows it; "" nobody does. ``etag``: what all its
    pieces are asked for by.
    """

    __slots__ = ("_came", "_etag", "_expected", "_found", "chunk", "one", "part", "resumed", "tries", "waiting")

    def __init__(self, one: DataObject, part: str, chunk: int, expected: str, etag: str) -> None:
        self.one, self.part, self.chunk = one, part, chunk
        self.tries = 0
        self.waiting = 0
        """Pieces that have not arrived."""
        self.resumed = 0
        """Bytes that an earlier staging brought."""
        self._came: list[tuple[int, int, dict[str, int]]] = []
        self._found = ""
        self._expected, self._etag = expected, etag

    def asks(self, parts: int, *, resume: bool) -> list[Ask]:
        """What must be fetched; with ``resume`` less what the part has already.

        Raises:
            OSError: the disk has no room for the part, or cannot read it.
        """
        size = self.one.size
        self._came = []
        self.resumed = 0
        if size <= RESUMED_BYTES:
            self.waiting = 1
            return [Ask(0, size, -1)]
        marks = verified(parts, self.part, size) if resume else []
        if resume:
            write_map(parts, self.part, marks)
        self._came = [(mark.start, mark.length, {crc.OWN: mark.crc}) for mark in marks]
        self.resumed = sum(mark.length for mark in marks)
        most = size if not marks and size <= WHOLE_BYTES else RANGE_BYTES
        if most < size:
            self._allocate(parts)
        # Slots of the map after those of the marks that stay.
        missing = enumerate(gaps(marks, size, most), len(marks))
        asks = [Ask(start, length, slot) for slot, (start, length) in missing]
        self.waiting = len(asks)
        return asks

    def piece(self, number: int, ask: Ask) -> Piece:
        """The range as the pool wants it."""
        one, algorithm = self.one, self._expected.partition(":")[0]
        whole = ask.length == one.size
        asked = algorithm if algorithm in crc.BYTES or (whole and algorithm) else ""
        return Piece(
            number, one.key, one.size, self._etag, one.version, ask.start, ask.length, self.part, asked, ask.slot
        )

    def arrive(self, ask: Ask, result: Arrived) -> bool:
        """A piece is there; whether it was the last one."""
        self._came.append((ask.start, ask.length, result.crcs))
        self.waiting -= 1
        return not self.waiting

    def crc64nvme(self) -> int:
        """The checksum of the whole, from those of its pieces."""
        return self._combined(crc.OWN)

    def is_right(self, parts: int) -> bool:
        """Whether the bytes give the checksum that is expected, if one is.

        Raises:
            OSError: the part cannot be read.
        """
        algorithm = self._expected.partition(":")[0]
        if not algorithm:
            return True
        pieces = [sums for _, _, sums in self._came]
        if all(algorithm in sums for sums in pieces) and (len(pieces) == 1 or algorithm in crc.BYTES):
            self._found = crc.text(algorithm, self._combined(algorithm))
        else:
            self._found = _read(parts, self.part, algorithm)
        return self._found == self._expected

    def mismatch(self, uri: str) -> str:
        """What is wrong with the bytes that came, in words."""
        one = self.one
        text = f"object {one.key!r} of {uri}: {self._found or 'another size'} came twice"
        return f"{text}, not {self._expected or f'{one.size} bytes'}; is it the data that the manifest was made of?"

    def _combined(self, algorithm: str) -> int:
        came = sorted(self._came, key=lambda piece: piece[0])
        whole = came[0][2][algorithm]
        for _, length, sums in came[1:]:
            whole = crc.combine(algorithm, whole, sums[algorithm], length)
        return whole

    def _allocate(self, parts: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(self.part, flags, 0o666, dir_fd=parts)
        try:
            allocate(handle, self.one.size)
        finally:
            os.close(handle)


def _read(parts: int, part: str, algorithm: str) -> str:
    """A checksum of the whole part, read once from its start."""
    with open(os.open(part, FILE, dir_fd=parts), "rb", buffering=0) as source:
        if algorithm not in crc.BYTES:
            return f"{algorithm}:{hashlib.file_digest(source, algorithm).hexdigest()}"
        running, buffer = 0, memoryview(bytearray(_READ))
        while count := source.readinto(buffer):
            running = crc.crc(algorithm, buffer[:count], running)
        return crc.text(algorithm, running)
