"""One archive of what a node knows of a failed start, with a bound on its size that it keeps to."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

NODE_BYTES = 8 << 20
"""Of one node's archive, at most."""
GANG_BYTES = 64 << 20
"""Of all nodes' archives of one start together, as long as each has its ``LEAST_BYTES``."""
LEAST_BYTES = 64 << 10
FILE_BYTES = 1 << 20
"""Of one file the end is kept."""
INDEX = "index.json"
_BLOCK = 512
_ENDS = 24 << 10
"""The archive's own end, and its index with the header."""
_INDEXED = 150


def limit(nnodes: int) -> int:
    """Bytes that one node's archive may have in a gang of so many."""
    return max(LEAST_BYTES, min(NODE_BYTES, GANG_BYTES // max(1, nnodes)))


class Bundle:
    """Takes files in the order of their worth; of what has no room its index says so."""

    def __init__(self, nbytes: int, facts: dict[str, Any]) -> None:
        """``nbytes`` of the archive at most; ``facts`` of its index."""
        self._left = nbytes - _ENDS
        self._facts = facts
        self._files: list[tuple[str, bytes]] = []
        self._index: list[dict[str, Any]] = []

    def add(self, name: str, content: str | bytes) -> None:
        """A file, or its end; an empty one is left out."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        if data:
            self._add(name, data[-self._room() :] if self._room() else b"", len(data))

    def add_json(self, name: str, content: Any) -> None:
        """A file of JSON; left out when there is nothing in it."""
        if content:
            self.add(name, json.dumps(content, indent=1, default=str))

    def add_file(self, name: str, path: Path) -> None:
        """A file's end; one that cannot be read is not there."""
        try:
            with path.open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                room = min(self._room(), size)
                file.seek(size - room)
                data = file.read(room)
        except OSError:
            return
        if size:
            self._add(name, data, size)

    def _room(self) -> int:
        """Bytes of content that the next file may have."""
        return max(0, min(FILE_BYTES, (self._left - 3 * _BLOCK - _INDEXED) // _BLOCK * _BLOCK))

    def _add(self, name: str, data: bytes, size: int) -> None:
        if self._left < _INDEXED:
            self._facts["more_left_out"] = self._facts.get("more_left_out", 0) + 1
            return
        # Stored lengths are whole blocks, a long name takes two more; the compression only makes it smaller, but for a
        # few bytes in a block of 64 KB, which _ENDS holds.
        self._index.append({"name": name, "bytes": len(data), "left_out": size - len(data)})
        self._left -= _INDEXED
        if data:
            self._left -= -(-len(data) // _BLOCK) * _BLOCK + 3 * _BLOCK
            self._files.append((name, data))

    def archive(self) -> bytes:
        """A gzipped tar: :data:`INDEX` first."""
        target = io.BytesIO()
        index = json.dumps({**self._facts, "files": self._index}, indent=1).encode()
        with tarfile.open(fileobj=target, mode="w:gz", compresslevel=6) as archive:
            for name, data in [(INDEX, index), *self._files]:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return target.getvalue()
