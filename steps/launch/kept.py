"""Holds the shared memory of this pod's last saves while its ranks are started anew."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract import env
from argosy.steps.evidence.memory import available_bytes


@dataclass
class _Memory:
    """Of one rank."""

    handle: int
    inode: int
    size: int
    save: str = ""
    places: dict[str, list[Any]] = field(default_factory=dict)
    """SHA-256 of a file -> the fields of a :class:`argosy.steps.checkpoint.kept.Place`."""


class KeptMemory:
    """One for the life of a pod; all methods may be called from any thread.

    What ranks hold themselves costs nothing more. Once they have ended it is memory that the next ones may need, so it
    is let go when they have restored, or begun to train, and before that when less than as much again is free.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._present: dict[int, _Memory] = {}
        """By rank, of the ranks that run."""
        self._past: list[_Memory] = []
        """Of the ranks before."""

    def offer(self, folder: Path) -> dict[str, str]:
        """The ranks have ended and others are about to begin: what these find in their environment, with the index in
        ``folder``.
        """
        with self._lock:
            if self._present:
                self._drop()
                self._past, self._present = list(self._present.values()), {}
            index = {digest: place for memory in self._past for digest, place in memory.places.items()}
            if not index:  # each was in the middle of a save
                self._drop()
                return {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kept.json").write_text(json.dumps(index))
        return {env.KEPT_FILES: str(folder / "kept.json")}

    def take(self, record: dict[str, Any]) -> None:
        """A rank's writer has stored files of a save that lie in its shared memory (``progress.kept``)."""
        self.let_go()  # whoever saves does not restore any more
        rank, save = int(record["rank"]), str(record["name"])
        with self._lock:
            memory = self._opened(rank, f"/proc/{int(record['pid'])}/fd/{int(record['handle'])}")
            if memory is None:
                return
            if memory.save != save:
                memory.save, memory.places = save, {}
            path = f"/proc/{os.getpid()}/fd/{memory.handle}"
            for digest, start, size in record["files"]:
                memory.places[str(digest)] = [path, memory.inode, int(start), int(size)]

    def _opened(self, rank: int, path: str) -> _Memory | None:
        """The rank's memory as it is now: another inode is another writer's."""
        known = self._present.get(rank)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:  # it has ended already
            return known
        found = os.fstat(handle)
        if known is not None and known.inode == found.st_ino:
            os.close(handle)
            known.size = found.st_size
            return known
        if known is not None:
            os.close(known.handle)
        self._present[rank] = _Memory(handle, found.st_ino, found.st_size)
        return self._present[rank]

    def look(self) -> None:
        """Let go if memory is short; call it now and then."""
        if self._past and available_bytes() < sum(memory.size for memory in self._past):
            print("argosy: memory is short: what it held of the last checkpoint comes from the store", flush=True)
            self.let_go()

    def let_go(self) -> None:
        """Nobody restores any more."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        while self._past:
            with contextlib.suppress(OSError):
                os.close(self._past.pop().handle)
