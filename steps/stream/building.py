"""Makes the table of a dataset's block checksums: every object is read whole, once per version of the dataset."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable
from functools import partial

from argosy.steps.contract.causes import Cause
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import StageProgress
from argosy.steps.store import StoreError
from argosy.steps.stream.blocks import BlockTable, block_sums
from argosy.steps.stream.catalogue import Catalogue
from argosy.steps.stream.connection import Connection, Request
from argosy.steps.stream.extents import Extent, pieces
from argosy.steps.stream.whole import Whole, stored_of

IN_FLIGHT_BYTES = 256 << 20
PROGRESS_SECONDS = 0.5


def build_blocks(
    manifest: DatasetManifest,
    connection: Connection,
    *,
    on_progress: Callable[[StageProgress], None] = lambda _: None,
    in_flight_bytes: int = IN_FLIGHT_BYTES,
) -> BlockTable:
    """Read everything and take the checksums; ``in_flight_bytes`` bounds the memory for it.

    Raises:
        StoreError: an object changed since the snapshot (``s3_missing``), twice its bytes were not those that the
            store keeps a CRC of (``data_corrupt``), or it could not be read.
    """
    building = _Building(manifest, connection, in_flight_bytes, on_progress)
    building.run()
    return BlockTable(manifest.digest, building.catalogue.block, building.sums)


class _Building:
    def __init__(
        self,
        manifest: DatasetManifest,
        connection: Connection,
        most: int,
        on_progress: Callable[[StageProgress], None],
    ) -> None:
        self.catalogue = Catalogue(manifest)
        self.sums = array("Q", bytes(8 * self.catalogue.blocks))
        self._connection, self._most, self._on_progress = connection, most, on_progress
        self._total, self._bytes, self._flying = manifest.total_bytes, 0, 0
        self._began = self._told = time.monotonic()
        self._suspects: list[Whole] = []
        self._error: StoreError | None = None
        self._changed = threading.Condition()

    def run(self) -> None:
        for number, stored in enumerate(stored_of(self.catalogue)):
            self._read(number, stored, last=False)
        self._finish()
        # Once more: a broken wire is more often to blame than a broken object.
        for suspect in self._suspects:
            self._read(suspect.number, suspect.stored, last=True)
        self._finish()

    def _read(self, number: int, stored: str, *, last: bool) -> None:
        one = self.catalogue[number]
        cut = pieces(Extent(number, 0, one.size), self.catalogue.block)
        whole = Whole(number, stored, len(cut), last=last)
        for piece in cut:
            with self._changed:
                self._changed.wait_for(lambda: self._error or self._has_room(piece.length))  # noqa: B023
                self._raise()
                self._flying += piece.length
            memory = memoryview(bytearray(piece.length))
            done = partial(self._done, piece, memory, whole)
            self._connection.submit(Request(one.key, one.etag, one.version, piece.start, memory, done))
            self._tell(number)

    def _has_room(self, length: int) -> bool:
        return not self._flying or self._flying + length <= self._most

    def _finish(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._error or not self._flying)
            self._raise()

    def _tell(self, number: int) -> None:
        now = time.monotonic()
        if now - self._told > PROGRESS_SECONDS:
            self._told = now
            seconds = round(now - self._began, 3)
            self._on_progress(StageProgress(number, len(self.catalogue), self._bytes, self._total, seconds))

    def _done(self, piece: Extent, memory: memoryview, whole: Whole, error: StoreError | None) -> None:
        block = self.catalogue.block
        if error is None:
            sums = block_sums(memory, block)
            first = self.catalogue.first_blocks[piece.object] + piece.start // block
            self.sums[first : first + len(sums)] = sums
            if flaw := whole.flaw(piece.start, memory):
                where = f"object {self.catalogue[piece.object].key!r} of {self.catalogue.uri}"
                error = StoreError(Cause.DATA_CORRUPT, f"{where}: {flaw}")
        with self._changed:
            if error is not None and error.cause == Cause.DATA_CORRUPT and not whole.last:
                if not whole.suspect:
                    self._suspects.append(whole)
                whole.suspect, error = True, None
            self._flying -= piece.length
            self._bytes += piece.length
            self._error = self._error or error
            self._changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
