"""What still lies in a pod's shared memory of the files that its ranks saved, for the ranks that are started anew.

launch holds the memory and writes an index of it (SHA-256 -> the fields of :class:`Place`); a rank opens the memory
through ``/proc``. Nothing is promised of what lies there: a later snapshot may have begun to overwrite it, launch may
have let it go. So it is copied and hashed like what a store gives; where the bytes are others the store is asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.contract import env

_RANGE = 4 << 20


@dataclass(frozen=True)
class Place:
    """Where one file begins in which memory."""

    memory: str
    """A path that opens it."""
    inode: int
    """Of the memory: the path may lead to another file by now."""
    start: int
    size: int


class Kept:
    """The files that launch holds in memory, by SHA-256; may be read by several threads."""

    def __init__(self, places: dict[str, Place]) -> None:
        self._places = places

    @classmethod
    def given(cls) -> Kept:
        """What launch says it holds; nothing outside of argosy."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            index = json.loads(Path(os.environ.get(env.KEPT_FILES, "")).read_bytes())
            return cls({digest: Place(*place) for digest, place in index.items()})
        return cls({})

    def read(self, file: ShardFile, into: memoryview) -> bool:
        """Fill ``into``; whether it now holds the file's bytes."""
        place = self._places.get(file.sha256)
        if place is None or place.size != file.size:
            return False
        with contextlib.suppress(OSError):
            handle = os.open(place.memory, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if os.fstat(handle).st_ino == place.inode:
                    found = filled(into, lambda at, piece: os.preadv(handle, [piece], place.start + at))
                    return found == (file.size, file.sha256)
            finally:
                os.close(handle)
        return False


def filled(into: memoryview, read: Callable[[int, memoryview], int]) -> tuple[int, str]:
    """Fill ``into`` range by range, each hashed while it is warm: how many bytes there were, and their SHA-256."""
    seen, hashed = 0, hashlib.sha256()
    while seen < len(into) and (count := read(seen, into[seen : seen + _RANGE])):
        hashed.update(into[seen : seen + count])
        seen += count
    return seen, hashed.hexdigest()
