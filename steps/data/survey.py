"""What of a share lies in the folder already: the rows of earlier stagings, each held against its file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DataObject
from argosy.steps.data.parts import Parts
from argosy.steps.data.records import FileRecord, key_of, record_of
from argosy.steps.data.rows import CHUNK, Row, Rows
from argosy.steps.data.tree import Tree
from argosy.steps.data.wanted import Wanted

Depth = Literal["none", "stat", "full"]
"""How a file that is there already is verified: not at all, by size and mtime, or by reading it."""
DEPTHS = ("none", "stat", "full")
_READ = 4 << 20
_BLOCK = 4096


@dataclass
class Survey:
    """``present``: a byte for each object, 1 where its file is right; and sums of the others.

    ``missing_room``: what the missing ones take on a disk, whole blocks.
    """

    present: bytearray = field(default_factory=bytearray)
    present_bytes: int = 0
    missing: int = 0
    missing_room: int = 0

    def count(self, one: DataObject, present: bool) -> None:
        """Note the next object."""
        self.present.append(present)
        if present:
            self.present_bytes += one.size
        else:
            self.missing += 1
            self.missing_room += -(-one.size // _BLOCK) * _BLOCK


class Surveyor:
    """Looks at files through ``tree``, and at parts that already had their record but not yet their name."""

    def __init__(self, tree: Tree, parts: Parts, verify: Depth, tell: Callable[[Survey], None]) -> None:
        """``tell`` is called after each chunk and may raise to give up."""
        self._tree, self._parts, self._verify, self._tell = tree, parts, verify, tell

    def survey(self, wanted: Wanted, known: Iterable[Row], rows: Rows) -> Survey:
        """Look at every object, and leave in ``rows`` what is known of the present ones, chunk by chunk."""
        found, candidates, objects = Survey(), _Candidates(known), iter(wanted)
        chunk = 0
        while some := list(islice(objects, CHUNK)):
            lines = [line for one in some if (line := self._look(one, candidates, found))]
            if len(lines) == len(some):
                rows.finish(chunk, lines)
            elif candidates.any:
                rows.begin(chunk, lines)
            chunk += 1
            self._tell(found)
        return found

    def _look(self, one: DataObject, candidates: _Candidates, found: Survey) -> bytes:
        for row in candidates.of(one.key):
            record = record_of(row.line)
            if record is not None and record.is_of(one) and self._usable(record, row.unsure, one):
                found.count(one, True)
                return row.line
        found.count(one, False)
        self._parts.claim(one)
        return b""

    def _usable(self, record: FileRecord, unsure: bool, one: DataObject) -> bool:
        by_content = self._verify == "full" or unsure
        if _intact(self._tree, record, by_content):
            return True
        part = self._parts.name(one)
        facts = self._parts.facts(part) if part in self._parts.left else None
        if facts is None or (facts.st_size, facts.st_mtime_ns) != (record.size, record.mtime_ns):
            return False
        # Killed between writing the record and naming the file. What is in the way now will be gone, or named, later.
        with contextlib.suppress(OSError, StepError):
            self._tree.publish(self._parts.handle, part, one.key)
        return _intact(self._tree, record, by_content)


def all_intact(tree: Tree, rows: Iterable[Row], count: int, verify: Depth) -> bool:
    """Whether the rows of a finished staging are ``count``, and each of their files is as it was left."""
    if verify == "none":
        return True
    seen = 0
    for row in rows:
        record = record_of(row.line)
        if record is None or not _intact(tree, record, verify == "full"):
            return False
        seen += 1
    return seen == count


def _intact(tree: Tree, record: FileRecord, by_content: bool) -> bool:
    found = tree.stat(record.key)
    if found is None or (found.st_size, found.st_mtime_ns) != (record.size, record.mtime_ns):
        return False
    return not by_content or _crc(tree, record.key) == record.crc64nvme


def _crc(tree: Tree, key: str) -> int:
    from argosy.steps.transfer.crc import OWN, crc  # only here: it is heavy, and most stagings read no file again

    running = 0
    try:
        with open(tree.open(key), "rb", buffering=0) as source:
            while chunk := source.read(_READ):
                running = crc(OWN, chunk, running)
    except OSError:
        return -1
    return running


class _Candidates:
    """Rows by key, asked for by keys in order."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)
        self.any = self._next is not None

    def of(self, key: str) -> Iterator[Row]:
        if self._next is None:
            return
        wanted = key.encode()
        while self._next is not None and key_of(self._next.line) < wanted:
            self._next = next(self._rows, None)
        while self._next is not None and key_of(self._next.line) == wanted:
            yield self._next
            self._next = next(self._rows, None)
