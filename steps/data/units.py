"""A dataset in at most some 262,144 units that are never divided among nodes, and which node each belongs to.

A unit is one large object, or all small objects whose keys hash alike: that many numbers fit into memory however
many objects there are, and are enough to balance nodes by.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from argosy.steps.data.sampler import mixed

SMALL_UNITS = 1 << 17
SLACK = 1.02
"""A node takes no further unit by preference once it would hold this many times the mean bytes."""
FORMAT = "argosy-units-1"
_TRIES = 48
_MASK = (1 << 64) - 1
_LARGE = 1 << 63
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass
class Units:
    """The units by number: the bytes of each one's objects and how many they are."""

    total_bytes: int
    sizes: dict[int, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, total_bytes: int, objects: Iterable[tuple[bytes, int]]) -> Units:
        """Count (key, size) pairs whose sizes sum up to ``total_bytes``."""
        found = cls(total_bytes)
        sizes, counts, number = found.sizes, found.counts, found.number
        for key, size in objects:
            unit = number(key, size)
            sizes[unit] = sizes.get(unit, 0) + size
            counts[unit] = counts.get(unit, 0) + 1
        return found

    def number(self, key: bytes, size: int) -> int:
        """The unit of an object; fewer than SMALL_UNITS objects can be large ones."""
        if size * SMALL_UNITS > self.total_bytes:
            return int.from_bytes(blake2b(key, digest_size=8).digest()) | _LARGE
        return zlib.crc32(key) % SMALL_UNITS

    def assigned(self, nnodes: int) -> dict[int, int]:
        """The node rank of each unit; no node holds much more than the mean, and most units stay when one joins.

        Jump consistent hashing with bounded load: a unit goes to the first of its nodes that still has room.
        """
        # Large ones first: what comes last is small and can fill the gaps. Empty objects weigh as much as a byte.
        weights = {unit: max(size, self.counts[unit]) for unit, size in self.sizes.items()}
        room = [SLACK * sum(weights.values()) / nnodes] * nnodes
        nodes: dict[int, int] = {}
        for unit in sorted(weights, key=lambda unit: (-weights[unit], mixed(unit))):
            weight = weights[unit]
            wanted = (_jump(mixed(unit + attempt * _GOLDEN & _MASK), nnodes) for attempt in range(_TRIES))
            node = next((node for node in wanted if room[node] >= weight), -1)
            if node < 0:
                node = room.index(max(room))
            room[node] -= weight
            nodes[unit] = node
        return nodes

    def to_bytes(self) -> bytes:
        """The table as it is stored: gzip of JSON."""
        rows = [[unit, size, self.counts[unit]] for unit, size in sorted(self.sizes.items())]
        record = {"format": FORMAT, "bytes": self.total_bytes, "units": rows}
        return gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 1, mtime=0)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Units:
        """Parse what :meth:`to_bytes` wrote.

        Raises:
            ValueError: not such a table.
        """
        try:
            record: dict[str, Any] = json.loads(gzip.decompress(raw))
            if record["format"] != FORMAT:
                raise ValueError(f"not of format {FORMAT}")
            rows = [(int(unit), int(size), int(count)) for unit, size, count in record["units"]]
            sizes, counts = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
            return cls(int(record["bytes"]), sizes, counts)
        except (OSError, EOFError, zlib.error, KeyError, TypeError) as error:
            raise ValueError(f"not a table of units: {error}") from error


def _jump(seed: int, nnodes: int) -> int:
    """Jump consistent hash (Lamping and Veach, arXiv 1406.2294): with one node more, a seed stays or goes to it."""
    node, following = -1, 0
    while following < nnodes:
        node = following
        seed = (seed * 2862933555777941757 + 1) & _MASK
        following = int((node + 1) * (1 << 31) / ((seed >> 33) + 1))
    return node
