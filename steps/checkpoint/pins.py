"""Checkpoints that a person keeps: an acknowledged pin never loses against a prune, and nobody waits for anybody.

Pinning puts an object and THEN reads the log; pruning appends its decision and THEN lists the pins. So either the
pruner sees the pin, or the pinner sees the decision, withdraws its own object and says so. Each pinner has an object
of its own: with one per digest, a pinner that withdraws would take another's acknowledged pin along.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import dataclass

from argosy.steps.checkpoint.log import CommitLog, Entry, joined
from argosy.steps.checkpoint.parallel import in_parallel
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store.base import ObjectMissing, ObjectStore

_KEY = re.compile(r"pins/([0-9a-f]{64})/(\d{10,})-([0-9a-f]+)\.json")


@dataclass(frozen=True)
class Pin:
    """One pin, as its key says it: no pin must be read to be respected."""

    digest: str
    seq: int
    """Number of the log entry that committed the checkpoint."""
    key: str
    """Below the run's prefix."""


class Pins:
    """The pins of one run."""

    def __init__(self, store: ObjectStore, prefix: str, log: CommitLog) -> None:
        self._store = store
        self._prefix = prefix
        self._log = log

    def listed(self) -> list[Pin]:
        """All pins (one listing)."""
        cut = len(joined(self._prefix, ""))
        found = (_KEY.fullmatch(info.key[cut:]) for info in self._store.list(joined(self._prefix, "pins")))
        return [Pin(match[1], int(match[2]), match[0]) for match in found if match]

    def reasons(self) -> dict[str, str]:
        """Digest -> reason of its newest pin."""
        pins = self.listed()
        records = in_parallel(self._record, pins, threads=8, small=4)
        by_age = sorted(zip(records, pins, strict=True), key=lambda item: item[0][0])
        return {pin.digest: reason for (_, reason), pin in by_age}

    def add(self, digest: str, seq: int, reason: str) -> Pin:
        """Pin the checkpoint that log entry ``seq`` committed.

        Raises:
            StepError: ``checkpoint_mismatch``: it was pruned (nothing is left of this pin). StoreError: not known
            whether it is pinned; pinning again is safe.
        """
        key = f"pins/{digest}/{seq:010d}-{uuid.uuid4().hex[:16]}.json"
        record = {"digest": digest, "seq": seq, "reason": reason, "created": time.time()}
        self._store.put(joined(self._prefix, key), json.dumps(record, sort_keys=True).encode())
        if self._log.dropped(self._log.tail(), [seq]):
            self._store.delete(joined(self._prefix, key))
            raise StepError(Cause.CHECKPOINT_MISMATCH, f"checkpoint {digest} was pruned: it cannot be pinned any more")
        return Pin(digest, seq, key)

    def remove(self, digest: str) -> int:
        """Remove every pin of the digest; how many there were."""
        mine = [pin for pin in self.listed() if pin.digest == digest]
        for pin in mine:
            self._store.delete(joined(self._prefix, pin.key))
        return len(mine)

    def dropped(self, tail: Entry) -> list[Entry]:
        """Commits that the log dropped and a pin keeps all the same, newest first.

        Only a pin that was made while a prune was deciding has such a commit: the others are in the log's ``keep``.
        """
        seqs = {pin.seq: pin.digest for pin in self.listed()}
        gone = sorted(self._log.dropped(tail, seqs), reverse=True)
        entries = [self._log.read(seq) for seq in gone]
        return [entry for entry in entries if entry is not None and entry.digest == seqs[entry.seq]]

    def _record(self, pin: Pin) -> tuple[float, str]:
        try:
            record = json.loads(self._store.get(joined(self._prefix, pin.key)))
            return float(record["created"]), str(record["reason"])
        except (ObjectMissing, ValueError, KeyError, TypeError):
            return 0.0, "unreadable record"
