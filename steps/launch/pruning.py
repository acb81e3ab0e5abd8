"""Old checkpoints of a script are removed, but none while its loss is no number: the run may go back to them."""

from __future__ import annotations

import math
import sys

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.errors import StepError

MOST_HELD = 50
"""Commits for which nothing is removed; a script may also print a NaN for ever and mean nothing by it."""


class Pruning:
    """After each commit; ``keep`` 0: never."""

    def __init__(self, checkpoints: CheckpointStore, keep: int, *, others_restore: bool = False) -> None:
        """``others_restore``: before a second commit other nodes may still be fetching what all go on from: a script
        may save once before its first collective, which waits for them.
        """
        self._others_restore = others_restore
        self._checkpoints = checkpoints
        self._keep = keep
        self._wrong = False
        self._held = 0

    def tell(self, loss: float) -> None:
        """What rank 0 told last."""
        self._wrong = not math.isfinite(loss)

    def prune(self) -> None:
        """Also when it fails the commit stands."""
        self._held = self._held + 1 if self._wrong else 0
        others_restore, self._others_restore = self._others_restore, False
        if not self._keep or others_restore or 0 < self._held <= MOST_HELD:
            return
        try:
            self._checkpoints.prune(self._keep)
        except StepError as error:
            print(f"argosy: old checkpoints not removed: {error.cause}: {error}", file=sys.stderr, flush=True)
