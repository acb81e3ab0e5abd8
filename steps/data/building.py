"""From objects in any order, and any number of them, to a manifest: keys checked, rows cut into shards."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from itertools import chain

from argosy.steps.data.keys import Meetings, Offences, folded, see_folded
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.shards import ROWS, Shard, pack, unpack
from argosy.steps.data.sorting import sorted_lines
from argosy.steps.data.spool import Spool


def build_manifest(uri: str, objects: Iterable[DataObject]) -> DatasetManifest:
    """The manifest of all ``objects``; its rows lie in memory or, when they are many, in a file without a name.

    Objects that come by key (as S3, GCS and Azure list them) are never sorted; others are, on disk.

    Raises:
        InputError: keys that cannot be files, or that would meet on disk; the offenders are named.
        StepError: ``disk_full``: the rows do not fit into ``$TMPDIR``.
    """
    offences = Offences()
    rows = iter(objects)
    kept = _Rows()
    for one in rows:
        if offences.sound(one.key) and not kept.add(one.key, one.line(), one.size):
            rest = (other for other in chain([one], rows) if other is one or offences.sound(other.key))
            kept = _merged(kept, rest, offences)
            break
    manifest = DatasetManifest(uri, kept.shards(), kept.read)
    if kept.folds:
        see_folded(manifest.keys(), offences)
    else:
        offences.extend(kept.met)
    offences.check()
    return manifest


def _merged(before: _Rows, rest: Iterable[DataObject], offences: Offences) -> _Rows:
    # NUL, which no sound key holds, sorts below everything: these lines are in the order of their keys.
    ordered = sorted_lines(b"%b\0%b" % (one.key.encode(), one.line()) for one in rest)
    kept = _Rows()
    for line in heapq.merge(before.lines(), ordered):
        key, _, row = line.partition(b"\0")
        name = key.decode()
        if not kept.add(name, row, json.loads(row)[1]):
            offences.add(name, "two objects have it")
    return kept


class _Rows:
    """Rows as they come, by key, cut into packed shards; and which of the keys meet if none has to be folded."""

    def __init__(self) -> None:
        self.folds = False
        self.met = Offences()
        self._meetings = Meetings(self.met)
        self._last = ""
        self._rows: list[bytes] = []
        self._bytes = 0
        self._spool = Spool()
        self._places: dict[Shard, tuple[int, int]] = {}

    def add(self, key: str, row: bytes, size: int) -> bool:
        """Take one more row; False, and nothing is taken, if its key does not come after the last one."""
        if key <= self._last:
            return False
        self._last = key
        if not self.folds:
            if folded(key) == key:
                self._meetings.see(key, key)
            else:
                self.folds = True
        self._rows.append(row)
        self._bytes += size
        if len(self._rows) == ROWS:
            self._cut()
        return True

    def _cut(self) -> None:
        text = b"\n".join(self._rows) + b"\n"
        packed = pack(text)
        self._places[Shard.of(text, self._bytes)] = self._spool.append(packed), len(packed)
        self._rows, self._bytes = [], 0

    def shards(self) -> tuple[Shard, ...]:
        """All shards in order; no row may come after."""
        if self._rows:
            self._cut()
        return tuple(self._places)

    def read(self, shard: Shard) -> bytes:
        """The text of one of them."""
        return unpack(shard, self._spool.read(*self._places[shard]))

    def lines(self) -> Iterator[bytes]:
        """``KEY NUL ROW`` of everything that was taken."""
        for shard in self.shards():
            for row in self.read(shard).splitlines():
                yield b"%b\0%b" % (json.loads(row)[0].encode(), row)
