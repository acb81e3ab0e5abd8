"""The rows of a manifest in blocks: how they are cut, named by their content, kept and read back verified."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

ROWS = 1 << 16
"""Rows of a shard; only a manifest's last one has fewer. Part of the format: the digest rests on where it is cut."""
_BLOCK = 1 << 12
_HEAD = re.compile(rb'^\["([^"\\\r\n]*(?:\\.[^"\\\r\n]*)*)",([0-9]+),', re.MULTILINE)
MAX_LENGTH = 256 << 20
"""Bytes of a shard's text that no sound one reaches: what says more is refused before memory is given to it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some rows: SHA-256 of their text (one line each), how many, the bytes of their objects, the text's length."""

    sha256: str
    rows: int
    total_bytes: int
    length: int

    @classmethod
    def of(cls, text: bytes, total_bytes: int) -> Shard:
        """The facts of a text whose objects have ``total_bytes`` together."""
        return cls(hashlib.sha256(text).hexdigest(), text.count(b"\n"), total_bytes, len(text))

    def check(self, text: bytes) -> bytes:
        """``text`` unchanged.

        Raises:
            ValueError: it is not the text of this shard.
        """
        if len(text) != self.length or hashlib.sha256(text).hexdigest() != self.sha256:
            raise ValueError(f"shard {self.sha256[:12]} has other content than its name says")
        return text


def parsed(text: bytes) -> Iterator[Any]:
    """The rows of a text, some thousands at a time: as fast as all at once, without holding them all.

    Raises:
        ValueError: a line is no JSON.
    """
    lines = text.splitlines()
    for first in range(0, len(lines), _BLOCK):
        yield from json.loads(b"[%b]" % b",".join(lines[first : first + _BLOCK]))


def sized(shard: Shard, text: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Of each row the key as it stands in it (ASCII, escaped as JSON), the size, and the row itself, not parsed.

    Raises:
        ValueError: a row is not written as a manifest writes it.
    """
    rows, found = text.splitlines(), _HEAD.findall(text)
    if not len(found) == len(rows) == shard.rows:
        raise ValueError(f"shard {shard.sha256[:12]} has {shard.rows} rows, {len(found)} are rows of a manifest")
    return ((key, int(size), row) for (key, size), row in zip(found, rows, strict=True))


def pack(text: bytes) -> bytes:
    """The text as it is stored: gzip without name and time."""
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(text) + packer.flush()


def unpack(shard: Shard, data: bytes) -> bytes:
    """The verified text of a stored shard; never more memory than the shard says.

    Raises:
        ValueError: not the shard's text, or no gzip.
    """
    try:
        return shard.check(zlib.decompressobj(wbits=31).decompress(data, shard.length + 1))
    except zlib.error as error:
        raise ValueError(f"shard {shard.sha256[:12]} cannot be unpacked: {error}") from error


Read = Callable[[Shard], bytes]
"""From a shard to its verified text; ValueError when what is kept is not it."""
