"""Holds the shared memory of this pod's last saves while its ranks are started anew, and copies of another's."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import mmap
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract import env
from argosy.steps.contract.channel import KEPT
from argosy.steps.evidence.memory import available_bytes

MOST_ASKED = 64
"""Nodes that a node asks what they have; in a larger gang the store is asked for the rest."""


@dataclass
class _Memory:
    """Of one rank."""

    handle: int
    inode: int
    size: int
    save: str = ""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """SHA-256 of a file -> where it begins, and its size."""

    @property
    def path(self) -> str:
        """What opens it."""
        return f"/proc/{os.getpid()}/fd/{self.handle}"

    def grow(self, size: int) -> None:
        """Have ``size`` bytes more; what follows begins at a page, as maps do."""
        self.size += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self.handle, self.size)


class KeptMemory:
    """One for the life of a pod; all methods may be called from any thread.

    What ranks hold themselves costs nothing more. Once they have ended it is memory that the next ones may need, so it
    is let go when they have restored, or begun to train, and before that when less than as much again is free.
    """

    def __init__(self, channel_token: str = "") -> None:
        self.token = hmac.new(channel_token.encode(), b"kept", hashlib.sha256).hexdigest()
        """What nodes and their ranks show each other: a training script has no business with the channel's own."""
        self._lock = threading.Lock()
        self._present: dict[int, _Memory] = {}
        """By rank, of the ranks that run."""
        self._past: list[_Memory] = []
        """Of the ranks before."""
        self._copy: list[_Memory] = []
        """Of another node's ranks, in memory of our own; one or none."""

    def turn(self) -> None:
        """The ranks have ended, and others may begin."""
        with self._lock:
            if self._present:
                self._drop()
                self._past, self._present = list(self._present.values()), {}
            if not any(memory.places for memory in self._past):  # each was in the middle of a save
                self._drop()

    def index(self, save: str = "") -> dict[str, int]:
        """What is here for a restart: SHA-256 of a file -> its size. ``save``: of that one, by the ranks that run."""
        with self._lock:
            found = [each for each in self._present.values() if each.save == save] if save else self._past + self._copy
            return {digest: size for memory in found for digest, (_, size) in memory.places.items()}

    def opened(self, digest: str) -> tuple[int, int, int] | None:
        """A handle of its own on the memory that holds the file, where it begins there, and its size."""
        with self._lock:
            for memory in (*self._past, *self._copy, *self._present.values()):
                if digest in memory.places:
                    return os.dup(memory.handle), *memory.places[digest]
        return None

    def offer(self, folder: Path, others: Sequence[str] = ()) -> dict[str, str]:
        """What ranks that are about to begin find in their environment, with the index in ``folder``; ``others``:
        ADDRESS:PORT of other nodes that have something.
        """
        places: dict[str, list[Any]] = self._of_others(others[:MOST_ASKED]) if others else {}
        with self._lock:
            for memory in self._copy + self._past:
                for digest, place in memory.places.items():
                    places[digest] = [memory.path, memory.inode, *place]
        if not places:
            return {}
        folder.mkdir(parents=True, exist_ok=True)
        index = folder / "kept.json"
        with open(os.open(index, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as target:
            json.dump({"token": self.token, "places": places}, target)
        return {env.KEPT_FILES: str(index)}

    def _of_others(self, addresses: Sequence[str]) -> dict[str, list[Any]]:
        # Imported here: a run that never restarts does without.
        from concurrent.futures import ThreadPoolExecutor

        from argosy.steps.checkpoint.peers import Peers

        peers = Peers(self.token)
        with ThreadPoolExecutor(len(addresses)) as pool:
            found = list(pool.map(peers.index, addresses))
        return {
            digest: [f"http://{address}{KEPT}/{digest}", 0, 0, size]
            for address, index in zip(addresses, found, strict=True)
            for digest, size in index.items()
        }

    def take(self, record: dict[str, Any]) -> None:
        """A rank's writer has stored files of a save that lie in its shared memory (``progress.kept``)."""
        self.let_go()  # whoever saves does not restore any more
        rank, save = int(record["rank"]), str(record["name"])
        with self._lock:
            memory = self._seen(rank, f"/proc/{int(record['pid'])}/fd/{int(record['handle'])}")
            if memory is None:
                return
            if memory.save != save:
                memory.save, memory.places = save, {}
            memory.places |= {str(digest): (int(start), int(size)) for digest, start, size in record["files"]}

    def _seen(self, rank: int, path: str) -> _Memory | None:
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

    def new_copy(self) -> _Memory:
        """Memory for what another node saved, in place of what was copied before."""
        memory = _Memory(os.memfd_create("argosy-copy", os.MFD_CLOEXEC), 0, 0)
        memory.inode = os.fstat(memory.handle).st_ino
        self.drop_copy()
        with self._lock:
            self._copy = [memory]
        return memory

    def copied_bytes(self) -> int:
        """Of another node, held here."""
        with self._lock:
            return sum(memory.size for memory in self._copy)

    def drop_copy(self) -> None:
        """Free it; only for who makes the copies: nothing may be written into it any more."""
        with self._lock:
            while self._copy:
                os.close(self._copy.pop().handle)

    def copied(self, memory: _Memory, digest: str, start: int, size: int) -> None:
        """A file lies there."""
        with self._lock:
            memory.places[digest] = (start, size)

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
