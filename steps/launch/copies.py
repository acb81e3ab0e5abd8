"""Keeps in memory what another node of the gang saved last: its part of the checkpoint outlives that node."""

from __future__ import annotations

import mmap
import threading
import time

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.checkpoint.peers import Peers
from argosy.steps.contract.channel import KEPT, Assignment
from argosy.steps.evidence.memory import available_bytes
from argosy.steps.launch.kept import KeptMemory

_RESERVE = 256 << 20
"""Bytes that are left free for the ranks."""
_SHORT = 128 << 20
"""Bytes: with less free the ranks need the copy's memory more than a restart might."""
_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 0.5
_TRIES = 10
"""How often a node that has not heard yet of the save it made itself is asked."""


class Copies:
    """Of one restart. The node before this one is copied from, node 0 by node 1 and the last one by node 0.

    Nothing is copied before the save is committed on all nodes: until then the copy of the one before is what a
    restart would need.
    """

    def __init__(self, kept: KeptMemory, assignment: Assignment) -> None:
        self._kept = kept
        self._node = (assignment.node_rank - 1) % assignment.nnodes
        self._address = assignment.keepers[self._node] if assignment.keepers else ""
        self._saved, self._ended = threading.Event(), threading.Event()
        self._committed = self._copied = ""
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="copies", daemon=True)

    def start(self) -> None:
        """Wait for saves."""
        if self._address:
            self._thread.start()

    def committed(self, save: str) -> None:
        """Of the gang, the save of that name is; told by each rank of this node."""
        self._committed = save
        self._saved.set()

    def end(self) -> None:
        """Copy nothing more; what is here stays."""
        self._ended.set()
        self._saved.set()

    def _run(self) -> None:
        while True:
            if not self._saved.wait(_LOOK_SECONDS):
                self._make_room()
                continue
            if self._ended.is_set():
                return
            self._saved.clear()
            save = self._committed
            if save != self._copied:
                self._copied = save
                try:
                    self._copy(save)
                except OSError as error:  # RLIMIT_AS (ulimit -v)
                    self._tell(f"holds no copy of what node {self._node} saved", f": {error}")

    def _copy(self, save: str) -> None:
        began, memory, peers, size = time.monotonic(), self._kept.new_copy(), Peers(self._kept.token), 0
        for _ in range(_TRIES):
            found = peers.index(self._address, save)
            wanted = {digest: length for digest, length in found.items() if digest not in memory.places}
            if found and not wanted:
                break
            for digest, length in wanted.items():
                start = memory.size
                if self._ended.is_set() or not self._room(length):
                    return
                memory.grow(length)
                with mmap.mmap(memory.handle, length, offset=start) as here, memoryview(here) as into:
                    file = ShardFile(path=digest, key=digest, size=length, sha256=digest)
                    if not peers.read(f"http://{self._address}{KEPT}/{digest}", file, into):
                        return self._tell(f"node {self._node} did not give what it saved")
                self._kept.copied(memory, digest, start, length)
                size += length
            self._ended.wait(0 if wanted else _AGAIN_SECONDS)
        if not size and not self._ended.is_set():
            why = "it keeps nothing of it in memory, where files are saved one at a time or the next save has begun"
            self._tell(f"holds no copy of what node {self._node} saved", f": {why}")
        elif size:
            took = time.monotonic() - began
            self._tell(
                f"holds a copy of what node {self._node} saved", f": {size / 1e9:.2f} GB, copied in {took:.1f} s"
            )

    def _make_room(self) -> None:
        """Only here, between two copies: nobody writes into what is let go."""
        if self._kept.copied_bytes() and available_bytes() < _SHORT:
            self._kept.drop_copy()
            self._tell(f"memory is short: node {self._node}'s part of the last checkpoint comes from the store")

    def _room(self, size: int) -> bool:
        free = available_bytes()
        if free >= size + _RESERVE:
            return True
        self._tell(
            f"no room for a copy of what node {self._node} saved", f": {size / 1e9:.2f} GB, {free / 1e9:.2f} free"
        )
        return False

    def _tell(self, what: str, more: str = "") -> None:
        """Once: saves come by the hundred."""
        if what not in self._told:
            self._told.add(what)
            print(f"argosy: {what}{more}", flush=True)
