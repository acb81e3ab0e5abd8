"""A file or memory as chunks to send, hashed and counted as they go."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 8 << 20
_MOST_CHUNKS = 9_000
"""An upload in parts has at most 10,000 of them; a file may still grow a little."""


class HashedChunks:
    """Iterates once over the source; ``digest`` and ``size`` are then those of the chunks that were taken.

    Raises OSError while iterating: the file cannot be read.
    """

    def __init__(self, source: Path | memoryview) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self.size = 0
        expected = source.nbytes if isinstance(source, memoryview) else os.stat(source).st_size
        self.chunk_size = max(_CHUNK, -(-expected // _MOST_CHUNKS))
        self.small = expected < self.chunk_size

    @property
    def digest(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[bytes | memoryview]:
        for chunk in self._memory(self._source) if isinstance(self._source, memoryview) else self._file(self._source):
            self._hash.update(chunk)
            self.size += len(chunk)
            yield chunk

    def whole(self) -> bytes:
        """All chunks in one, for what is small."""
        return b"".join(self)

    def _memory(self, source: memoryview) -> Iterator[memoryview]:
        flat = flat_bytes(source)
        for start in range(0, len(flat), self.chunk_size):
            yield flat[start : start + self.chunk_size]

    def _file(self, source: Path) -> Iterator[bytes]:
        with source.open("rb", buffering=0) as file:
            while chunk := file.read(self.chunk_size):
                yield chunk


def flat_bytes(source: memoryview) -> memoryview:
    """The same memory as bytes; an empty view cannot be cast, so that is another empty one."""
    return source.cast("B") if source.nbytes else memoryview(b"")
