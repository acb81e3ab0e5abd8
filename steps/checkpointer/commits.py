"""What only rank 0's writer does: claim's holder, it commits complete saves, says so, and removes old ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from argosy.steps import progress
from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.coordinator import Agreed
from argosy.steps.checkpointer.interval import Interval
from argosy.steps.checkpointer.lines import Record
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError


class Commits:
    """Used by one thread at a time."""

    def __init__(self, store: CheckpointStore, claim: Claim, keep: int, interval: Interval | None) -> None:
        """``interval``: decides how many steps lie between saves, where that is automatic."""
        self._store = store
        self._claim = claim
        self._keep = keep
        self._interval = interval
        self.began: dict[int, float] = {}
        """Save's number -> when rank 0's script called save, as ``time.monotonic`` says in both processes."""
        self.step_seconds = 0.0

    def commit(self, agreed: Agreed, clock: Callable[[], float]) -> Record:
        """Commit, then report it; the facts that every rank is told."""
        saved = self._store.commit(
            self._claim,
            agreed.name,
            agreed.step,
            agreed.parts,
            kind="tensors",
            world_size=agreed.world_size,
            final=agreed.final,
        )
        began = self.began.pop(agreed.number, None)
        seconds = agreed.seconds if began is None else clock() - began
        # From here and not from the script: it may be in the middle of a long step, and this is durable now.
        report(saved, seconds)
        facts: dict[str, Any] = {"saved": asdict(saved), "seconds": seconds}
        if self._interval is not None:
            facts["every"] = self._interval.decide(agreed.stall, seconds, self.step_seconds)
        return facts

    def prune(self) -> None:
        """Remove old checkpoints; a store that fails at it costs space, no checkpoint.

        Raises:
            StepError: ``fenced``.
        """
        remove_old(self._store, self._keep, self._claim)


def report(saved: Saved, seconds: float) -> None:
    """Tell the supervisor of a commit; ``seconds`` from the call of save to the commit."""
    progress.committed(
        saved.step,
        digest=saved.digest,
        size=saved.bytes,
        seconds=seconds,
        final=saved.final,
        generation=saved.generation,
    )


def remove_old(store: CheckpointStore, keep: int, claim: Claim | None) -> None:
    """Prune down to ``keep`` checkpoints (0: all stay); a store that fails at it costs space, no checkpoint.

    Raises:
        StepError: ``fenced``.
    """
    if keep < 1:
        return
    try:
        store.prune(keep, claim)
    except StepError as error:
        if error.cause is Cause.FENCED:
            raise
        print(f"argosy: old checkpoints not removed: {error}", file=sys.stderr, flush=True)
