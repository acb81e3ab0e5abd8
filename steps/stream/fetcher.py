"""Reads the bytes of samples and verifies every one of them before anybody sees it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from argosy.steps.contract.causes import Cause
from argosy.steps.store import StoreError
from argosy.steps.stream.blocks import BlockTable
from argosy.steps.stream.catalogue import Catalogue
from argosy.steps.stream.connection import Connection, Request
from argosy.steps.stream.extents import Extent, merged, pieces
from argosy.steps.stream.statistics import Counters

_TRIES = 2
"""Wrong bytes are fetched once more: a broken wire is more often to blame than a broken object."""


@dataclass
class Fetch:
    """A group of extents that is under way, or there."""

    runs: list[Extent]
    memory: list[memoryview]
    left: int
    changed: threading.Condition = field(default_factory=threading.Condition)
    error: StoreError | None = None

    @property
    def size(self) -> int:
        """Memory that it takes."""
        return sum(run.length for run in self.runs)

    @property
    def ready(self) -> bool:
        """Whether :meth:`wait` returns at once."""
        return not self.left or self.error is not None

    def wait(self) -> None:
        """Until all bytes are there and verified.

        Raises:
            StoreError: the object changed (``s3_missing``), its bytes are wrong (``data_corrupt``), the store failed.
        """
        with self.changed:
            self.changed.wait_for(lambda: self.ready)
        if self.error is not None:
            raise self.error

    def cut(self, extent: Extent) -> bytes:
        """The bytes of one extent of the group."""
        if not extent.length:
            return b""
        low, high = 0, len(self.runs)
        while high - low > 1:
            middle = (low + high) // 2
            run = self.runs[middle]
            low, high = (middle, high) if (run.object, run.start) <= (extent.object, extent.start) else (low, middle)
        start = extent.start - self.runs[low].start
        return bytes(self.memory[low][start : start + extent.length])

    def told(self, error: StoreError | None) -> None:
        """One request of it has ended."""
        with self.changed:
            self.left -= 1
            self.error = self.error or error
            if self.ready:
                self.changed.notify_all()


class Fetcher:
    """Fetches extents of a catalogue's objects; with a table every block is verified, else only its version."""

    def __init__(
        self, catalogue: Catalogue, connection: Connection, counters: Counters, table: BlockTable | None
    ) -> None:
        self._catalogue, self._connection = catalogue, connection
        self._counters, self._table = counters, table
        self.block = table.block if table is not None else 1

    def begin(self, extents: Sequence[Extent]) -> Fetch:
        """Ask for all of them, which are samples'; returns at once."""
        self._counters.add(bytes=sum(one.length for one in extents))
        return self._ask(extents)

    def _ask(self, extents: Sequence[Extent]) -> Fetch:
        runs = merged(extents, self._catalogue.sizes, self.block)
        memory = [memoryview(bytearray(run.length)) for run in runs]
        wanted = [(piece, at) for run, at in zip(runs, memory, strict=True) for piece in pieces(run, self.block)]
        fetch = Fetch(runs, memory, len(wanted))
        origin = {id(at): run.start for run, at in zip(runs, memory, strict=True)}
        for piece, at in wanted:
            start = piece.start - origin[id(at)]
            _Part(self, fetch, piece, at[start : start + piece.length]).ask()
        return fetch

    def read(self, extents: Sequence[Extent]) -> list[bytes]:
        """The bytes of each, once they are there: those by which samples are found, and no sample's.

        Raises:
            StoreError: see :meth:`Fetch.wait`.
        """
        fetch = self._ask(extents)
        fetch.wait()
        return [fetch.cut(one) for one in extents]


class _Part:
    """One request, and the second one if its bytes are wrong."""

    def __init__(self, fetcher: Fetcher, fetch: Fetch, piece: Extent, into: memoryview) -> None:
        self._fetcher, self._fetch, self._piece, self._into = fetcher, fetch, piece, into
        self._one = fetcher._catalogue[piece.object]
        self._tries = _TRIES

    def ask(self) -> None:
        self._tries -= 1
        one = self._one
        self._fetcher._counters.add(requests=1, fetched_bytes=self._piece.length)
        request = Request(one.key, one.etag, one.version, self._piece.start, self._into, self._done)
        self._fetcher._connection.submit(request)

    def _done(self, error: StoreError | None) -> None:
        if error is None and (wrong := self._wrong()) is not None:
            error = self._corrupt(wrong)
        if error is not None and error.cause == Cause.DATA_CORRUPT and self._tries:
            self._fetcher._counters.add(refetched=1)
            self.ask()
        else:
            self._fetch.told(error)

    def _wrong(self) -> int | None:
        table = self._fetcher._table
        if table is None:
            return None
        first = self._fetcher._catalogue.first_blocks[self._piece.object] + self._piece.start // table.block
        return table.wrong(first, self._into)

    def _corrupt(self, wrong: int) -> StoreError:
        start = self._piece.start + wrong * self._fetcher.block
        end = min(start + self._fetcher.block, self._one.size)
        where = f"object {self._one.key!r} of {self._fetcher._catalogue.uri}"
        text = f"{where}: bytes {start}..{end - 1} came twice with another checksum than the table of the dataset has"
        return StoreError(Cause.DATA_CORRUPT, text, quote=text)
