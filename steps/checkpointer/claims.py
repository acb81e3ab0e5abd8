"""Under which generation a Checkpointer commits, and who does it: its own writer, or torch DCP in this process."""

from __future__ import annotations

import os
import socket
import threading
from typing import Literal

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError

By = Literal["Checkpointer.save", "torch DCP"]


class Claims:
    """Of one rank's Checkpointer. A second committer would append where the first one did and be fenced by it, so the
    one who saves first stays the only one.
    """

    def __init__(self, store: CheckpointStore, *, managed: bool) -> None:
        """``managed``: argosy has claimed, and the environment says so."""
        self._store = store
        self._managed = managed
        self._by: By | None = None
        self.made: Claim | None = None
        self._making = threading.Lock()

    def reserve(self, by: By) -> None:
        """From now on only ``by`` commits.

        Raises:
            InputError: the other one does.
        """
        if self._by not in (None, by):
            rule = f"this Checkpointer has saved with {self._by}: it cannot commit with {by} as well"
            raise InputError(f"{rule}; save with one of the two")
        self._by = by

    def claim(self, by: By) -> Claim:
        """The claim to commit under; made at the first call outside argosy.

        Raises:
            InputError: as :meth:`reserve`; or argosy's claim is not in the environment.
        """
        self.reserve(by)
        with self._making:  # saves of torch DCP may overlap, and a second claim would fence the first
            if self.made is None:
                self.made = self._made()
            return self.made

    def _made(self) -> Claim:
        if not self._managed:
            return self._store.claim(f"{socket.gethostname()}:{os.getpid()}")
        if (claim := given_claim()) is None:
            raise InputError(f"{env.GENERATION} and {env.LOG_SEQ} are not set: only a train step may save")
        return claim


def given_claim() -> Claim | None:
    """The claim that the environment names."""
    generation, seq = os.environ.get(env.GENERATION, ""), os.environ.get(env.LOG_SEQ, "")
    return Claim(int(generation), int(seq)) if generation.isdigit() and seq.isdigit() else None
