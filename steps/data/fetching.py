"""Fetch what is missing: pieces to the pool, results to verified files, rows before names, chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.flight import Ask, Flight
from argosy.steps.data.manifest import DataObject
from argosy.steps.data.parts import RESUMED_BYTES, Parts
from argosy.steps.data.records import FileRecord
from argosy.steps.data.rows import CHUNK, Rows
from argosy.steps.data.tree import Tree
from argosy.steps.data.wanted import Wanted
from argosy.steps.store import open_store
from argosy.steps.store.base import ObjectStore
from argosy.steps.transfer.checksums import stored_checksums
from argosy.steps.transfer.piece import WHOLE_BYTES, Arrived, Failed, Piece
from argosy.steps.transfer.pool import FetchPool

TELL_SECONDS = 0.5
_MOST_CHUNKS = 8
"""Chunks that may be unfinished at a time: one slow object must not hold the rows of all that follow."""
Range = tuple[Flight, Ask]


class Destination(NamedTuple):
    """Where fetched objects go."""

    tree: Tree
    parts: Parts
    rows: Rows


class _Chunks:
    """Which chunks have objects under way; a chunk's file is written when all of them were read and have landed."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._waiting: dict[int, int] = {}
        self._reading = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, chunk: int) -> None:
        """The objects before ``chunk`` have all been read."""
        before, self._reading = self._reading, chunk
        self._end(before)

    def add(self, chunk: int) -> None:
        self._waiting[chunk] = self._waiting.get(chunk, 0) + 1

    def land(self, chunk: int) -> None:
        self._waiting[chunk] -= 1
        self._end(chunk)

    def _end(self, chunk: int) -> None:
        if chunk < self._reading and self._waiting.get(chunk) == 0:
            del self._waiting[chunk]
            self._rows.finish(chunk)


class Fetching:
    """One use of a pool. ``objects`` were published; ``bytes`` arrived, of which ``resumed`` were here before."""

    def __init__(self, uri: str, pool: FetchPool, place: Destination, tell: Callable[[], None]) -> None:
        """``tell`` is called now and then and may raise to give up."""
        self._uri, self._pool, self._place, self._tell = uri, pool, place, tell
        self._chunks = _Chunks(place.rows)
        self._asked: dict[int, Range] = {}
        self._again: list[Range] = []
        self._number = 0
        self.objects = self.bytes = self.resumed = 0

    def run(self, wanted: Wanted, present: bytearray) -> None:
        """Fetch and publish all objects that are not ``present`` (a byte for each object).

        Raises:
            StepError: see :func:`argosy.steps.data.staging.stage_objects`.
            OSError: the disk refused.
        """
        ranges = self._ranges_of(wanted, present)
        told, more = time.monotonic(), True
        while True:
            more = self._submit(ranges, more)
            if not (more or self._asked):
                return
            self._take(self._pool.results(TELL_SECONDS))
            if time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                self._tell()

    def _ranges_of(self, wanted: Wanted, present: bytearray) -> Iterator[Range]:
        parts = self._place.parts
        stored = dict(stored_checksums(self._uri, ((one.key, one.etag) for one in parts.unproven())))
        chunk = 0
        for index, one in enumerate(wanted):
            if not index % CHUNK:
                chunk = index // CHUNK
                self._chunks.begin(chunk)
            if not present[index]:
                self._chunks.add(chunk)
                part = parts.name(one)
                flight = Flight(one, part, chunk, one.checksum or stored.get(one.key, ""), self._etag_of(one))
                yield from self._ranges(flight, resume=parts.claimed(part))
        self._chunks.begin(chunk + 1)

    def _etag_of(self, one: DataObject) -> str:
        """The manifest's; where it has none, ranges of one object must still be of one version: that of now."""
        if one.etag or one.version or one.size <= WHOLE_BYTES:
            return one.etag
        now = self._store.head(one.key)
        return now.etag if now is not None and not now.etag.startswith("W/") else ""  # a weak one matches nothing

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self._uri)

    def _ranges(self, flight: Flight, *, resume: bool) -> list[Range]:
        asks = flight.asks(self._place.parts.handle, resume=resume)
        self.bytes += flight.resumed
        self.resumed += flight.resumed
        if not asks:
            self._land([flight])
        return [(flight, ask) for ask in asks]

    def _submit(self, ranges: Iterator[Range], more: bool) -> bool:
        """Give the pool what it has room for; whether there may be more of ``ranges``."""
        pieces: list[Piece] = []
        room = self._pool.room()
        # What came wrong holds chunks open until it has come again.
        while len(pieces) < room and (self._again or len(self._chunks) <= _MOST_CHUNKS):
            following = self._again.pop() if self._again else next(ranges, None) if more else None
            if following is None:
                more = False
                break
            flight, ask = self._asked[self._number] = following
            pieces.append(flight.piece(self._number, ask))
            self._number += 1
        if pieces:
            self._pool.submit(pieces)
        return more or bool(self._again)

    def _take(self, results: Sequence[Arrived | Failed]) -> None:
        done, failed = [], None
        for result in results:
            flight, ask = self._asked.pop(result.number)
            if isinstance(result, Failed):
                failed = failed or result.error
                continue
            self.bytes += ask.length
            if flight.arrive(ask, result):
                done.append(flight)
        # What came together with a failure is kept.
        self._land(done)
        if failed is not None:
            raise failed

    def _land(self, flights: Sequence[Flight]) -> None:
        """Records first, then names: a kill between the two leaves a part whose record says what it is."""
        lines: dict[int, list[bytes]] = {}
        landing, wrong = [], []
        for flight in flights:
            record = self._verified(flight)
            if record is None:
                wrong.append(flight)
            else:
                landing.append(flight)
                lines.setdefault(flight.chunk, []).append(record.line())
        for chunk, rows in lines.items():
            self._place.rows.note(chunk, rows)
        for flight in landing:
            self._publish(flight)
        for flight in wrong:
            self._repeat(flight)

    def _verified(self, flight: Flight) -> FileRecord | None:
        """The record of the file that a part will be; None when its bytes are not what they should be."""
        parts, one = self._place.parts, flight.one
        facts = parts.facts(flight.part)
        if facts is None or facts.st_size != one.size or not flight.is_right(parts.handle):
            return None
        return FileRecord(one.key, one.size, facts.st_mtime_ns, flight.crc64nvme(), one.etag, one.version, one.checksum)

    def _publish(self, flight: Flight) -> None:
        self._place.tree.publish(self._place.parts.handle, flight.part, flight.one.key)
        if flight.one.size > RESUMED_BYTES:
            self._place.parts.drop(flight.part)
        self.objects += 1
        self._chunks.land(flight.chunk)

    def _repeat(self, flight: Flight) -> None:
        """Fetch an object once more, all of it; the second time it is the store's fault."""
        self._place.parts.drop(flight.part)
        if flight.tries:
            raise StepError(Cause.DATA_CORRUPT, flight.mismatch(self._uri))
        flight.tries += 1
        self.bytes -= flight.one.size
        self.resumed -= flight.resumed
        self._again += self._ranges(flight, resume=False)
