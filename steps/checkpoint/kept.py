"""What still lies in shared memory of the files that ranks saved, for the ranks that are started anew.

launch holds the memory of its pod and writes an index (SHA-256 -> the fields of :class:`Place`), also of what other
nodes hold; a rank opens the memory of its own pod through ``/proc``, and asks other nodes for theirs. Nothing is
promised of what lies there: a later snapshot may have begun to overwrite it, launch may have let it go. So it is copied
and hashed like what a store gives; where the bytes are others the store is asked.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.checkpoint.filling import filled
from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.checkpoint.peers import Peers
from argosy.steps.contract import env


@dataclass(frozen=True)
class Place:
    """Where one file begins in which memory."""

    memory: str
    """A path that opens it; of another node's, the url of the file itself."""
    inode: int
    """Of the memory: the path may lead to another file by now. 0: another node's."""
    start: int
    size: int


class Kept:
    """The files that launch holds in memory, by SHA-256; may be read by several threads."""

    def __init__(self, places: dict[str, Place], token: str = "") -> None:
        """``token``: other nodes ask for it."""
        self._places = places
        self._peers = Peers(token)

    @classmethod
    def given(cls) -> Kept:
        """What launch says it holds; nothing outside of argosy."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            index = json.loads(Path(os.environ.get(env.KEPT_FILES, "")).read_bytes())
            return cls({digest: Place(*place) for digest, place in index["places"].items()}, index["token"])
        return cls({})

    def read(self, file: ShardFile, into: memoryview) -> bool:
        """Fill ``into``; whether it now holds the file's bytes."""
        place = self._places.get(file.sha256)
        if place is None or place.size != file.size:
            return False
        if not place.inode:
            return self._peers.read(place.memory, file, into)
        with contextlib.suppress(OSError):
            handle = os.open(place.memory, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if os.fstat(handle).st_ino == place.inode:
                    found = filled(into, lambda at, piece: os.preadv(handle, [piece], place.start + at))
                    return found == (file.size, file.sha256)
            finally:
                os.close(handle)
        return False
