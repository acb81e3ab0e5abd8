"""One collective restore: the ranks agree on a checkpoint, and each verifies what it loads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.reader import CorruptCheckpoint
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.stopping import checked, failure, stop_for
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.state import random_generators
from argosy.steps.state.files import read_state


@dataclass(frozen=True)
class Restored:
    """What a checkpoint held; tensors are on the CPU."""

    step: int
    """The last step that is contained: go on with the next."""
    state: dict[str, Any]
    digest: str = ""
    rng: bool = False
    """True when this rank's random generators were set as they were."""


class Restoring:
    """A restore in the making."""

    def __init__(self, store: CheckpointStore, ranks: Ranks, *, random: bool) -> None:
        self._store = store
        self._ranks = ranks
        self._random = random

    def agreed_newest(self) -> str:
        """Digest, "" for none. Rank 0 chooses, so that no two ranks load different ones; what is damaged is set aside:
        there is no supervisor to walk back for us."""
        record: dict[str, Any] = {"digest": ""}
        if self._ranks.rank == 0:
            try:
                record["digest"] = self._newest_verified()
            except StepError as error:
                record = failure(error)
        return str(checked(self._ranks.broadcast(record))["digest"])

    def _newest_verified(self) -> str:
        while (found := self._store.newest()) is not None:
            try:
                self._store.verify(found)
                return found.digest
            except CorruptCheckpoint as error:
                print(f"argosy: {error}; set aside, trying the one before", file=sys.stderr, flush=True)
                self._store.quarantine(found.digest, str(error))
        return ""

    def run(self, digest: str) -> Restored:
        """Load it, every byte verified; an error ends the process with its cause's exit code."""
        try:
            return self._loaded(self._store.by_digest(digest))
        except StepError as error:
            stop_for(error)

    def _loaded(self, checkpoint: Checkpoint) -> Restored:
        if checkpoint.kind != "tensors":
            raise StepError(
                Cause.CHECKPOINT_MISMATCH,
                f"checkpoint {checkpoint.digest} holds files of a script (opaque mode), not a Checkpointer's state",
            )
        files = {file.path: file for file in checkpoint.files}

        def read(path: str) -> bytes:
            if path not in files:
                raise CorruptCheckpoint(checkpoint.digest, path, "the manifest does not list it")
            return self._store.reader.verified(checkpoint.digest, files[path].key, files[path].sha256)

        try:
            step, state = read_state(read)
            mine = random_generators.random_path(self._ranks.rank)
            same = self._random and mine in files and checkpoint.world_size == self._ranks.world_size
            if same:
                random_generators.restore(read(mine))
        except (ValueError, KeyError, TypeError) as error:
            raise StepError(Cause.CHECKPOINT_MISMATCH, f"checkpoint {checkpoint.digest}: {error}") from error
        return Restored(step, state, checkpoint.digest, same)
