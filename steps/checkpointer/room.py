"""The room of a state in its writer's arena: made when the state has another layout, filled at each save."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.snapshot import Filling, Snapshot
from argosy.steps.checkpointer.writer import Writer
from argosy.steps.contract.errors import StepError
from argosy.steps.state.tree import encode


class Room:
    """One writer's."""

    def __init__(self, writer: Writer, *, streaming: bool) -> None:
        self._writer = writer
        self.streaming = streaming
        """One file at a time through a small arena: slower, and needs little memory."""
        self._snapshot: Snapshot | None = None

    def make(self, tensors: Mapping[str, Any]) -> Snapshot:
        """Raises InputError as Snapshot does; StepError: ``host_oom``, not even one file has room."""
        if self._snapshot is not None and self._snapshot.fits(tensors):
            return self._snapshot
        self._snapshot = None  # its addresses end where the arena grows
        ranks, arena = Ranks(), self._writer.arena
        snapshot = Snapshot(tensors, ranks.rank, ranks.world_size)
        try:
            arena.grow(snapshot.window if self.streaming else snapshot.size)
        except StepError as error:
            if self.streaming:
                raise
            self.streaming = True
            print(f"argosy: {error}: saved one file at a time, training waits for it", file=sys.stderr, flush=True)
            arena.grow(snapshot.window)
        if unpinned := snapshot.pin(arena):
            print(f"argosy: {unpinned}: a save takes longer", file=sys.stderr, flush=True)
        snapshot.aim(arena, in_turns=self.streaming)
        self._writer.answers.pop("mapped", None)
        self._writer.send({"do": "map"})
        if ranks.rank == 0:
            described = json.dumps(snapshot.layout.tensors, separators=(",", ":")).encode()
            self._writer.send({"do": "describe"}, [described])
        self._snapshot = snapshot
        return snapshot

    def fill(self, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any], Snapshot]:
        """The state's tree, its tensors, and their plan; the copies have begun, unless it is ``streaming``."""
        self.settle()
        filling = Filling(self._snapshot) if self._snapshot is not None and not self.streaming else None
        tree, tensors = encode(state, filling)
        if self._snapshot is not None and filling is not None and filling.whole:
            return tree, tensors, self._snapshot
        self.settle()  # nothing is copied any more by a plan that the state does not have
        snapshot = self.make(tensors)
        snapshot.settle()
        if not self.streaming:
            for name, tensor in tensors.items():
                snapshot.copy(name, tensor)
        return tree, tensors, snapshot

    def settle(self) -> None:
        """Wait for copies that had begun, and for what they would not wait for themselves."""
        if self._snapshot is not None:
            self._snapshot.settle()
