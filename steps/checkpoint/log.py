"""The commit log: numbered entries, each created once, never changed and never deleted.

Entry ``n + 1`` is created by put-if-absent, so of two writers one wins and the other learns it. A gang's claim is an
entry like any other: once it is there, an older gang's next append collides and that gang is fenced. A deleted entry
could be created again by a very old writer, so nothing here deletes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from argosy.steps.checkpoint.entry import Entry, damaged, following
from argosy.steps.checkpoint.parallel import in_parallel
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import seq_name
from argosy.steps.store.base import ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.creation import create_ours

__all__ = ["Claim", "CommitLog", "Entry", "LogWriter", "joined"]

HINT_EVERY = 16
"""The hint is written with each so many entries; the tail is then found in a few requests whatever the history."""


def joined(prefix: str, key: str) -> str:
    """``prefix/key``; a run whose prefix is the store itself has prefix ""."""
    return f"{prefix}/{key}" if prefix else key


@dataclass(frozen=True)
class Claim:
    """The right to append: our generation, and the sequence number of the entry that claimed it."""

    generation: int
    seq: int


class CommitLog:
    """Reads the log of one run and claims generations; :class:`LogWriter` appends."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        """``prefix``: the run's key prefix, "" when the store is the run's own."""
        self.store = store
        self._base = joined(prefix, "log")
        self._hint = joined(prefix, "log-hint.json")

    def read(self, seq: int) -> Entry | None:
        """Entry ``seq``, or None if there is none yet.

        Raises:
            StepError: ``checkpoint_corrupt``: its bytes are damaged, read twice. StoreError.
        """
        key = f"{self._base}/{seq_name(seq)}"
        try:
            try:
                return Entry.from_bytes(self.store.get(key), seq)
            except StepError as error:
                if isinstance(error, StoreError):
                    raise
                # Damage on the way is over with a second reading; only damage in the store needs a person.
                return Entry.from_bytes(self.store.get(key), seq)
        except ObjectMissing:
            return None

    def tail(self) -> Entry | None:
        """The last entry, or None for an empty log.

        Entries have no gaps, so the end is found by doubling and halving: O(log n) reads, and O(1) from the hint.
        The hint is never trusted: an entry it names must exist, and the search goes on from there.
        """
        low = self._hinted() or self.read(1)
        if low is None:
            return None
        stride = 1
        while (ahead := self.read(low.seq + stride)) is not None:
            low, stride = ahead, stride * 2
        end = low.seq + stride
        while end - low.seq > 1:
            middle = self.read((low.seq + end) // 2)
            if middle is None:
                end = (low.seq + end) // 2
            else:
                low = middle
        return low

    def _hinted(self) -> Entry | None:
        try:
            seq = json.loads(self.store.get(self._hint))["seq"]
            return self.read(seq) if isinstance(seq, int) and seq > 0 else None
        except (ObjectMissing, ValueError, KeyError, TypeError):
            return None

    def create(self, entry: Entry) -> bool:
        """Put the entry at its number; False when another is there. Raises StoreError: not known which."""
        created = create_ours(self.store, f"{self._base}/{seq_name(entry.seq)}", entry.to_bytes())
        if created and entry.seq % HINT_EVERY == 0:
            try:
                self.store.put(self._hint, json.dumps({"seq": entry.seq}).encode())
            except StoreError:
                return True  # only a hint
        return created

    def claim(self, owner: str) -> Claim:
        """Take the next generation; every older one is fenced from now on.

        ``owner`` names the claimant for people. Raises StoreError: whether the claim was made is then not known,
        and claiming again is safe.
        """
        while True:
            last = self.tail()
            entry = following(last, kind="claim", generation=last.generation + 1 if last else 1, owner=owner)
            if self.create(entry):
                return Claim(entry.generation, entry.seq)

    def writer(self, claim: Claim) -> LogWriter:
        """The one writer of this claim: its first append goes to ``claim.seq + 1``.

        Raises:
            StepError: ``fenced``: entry ``claim.seq`` is not this claim.
        """
        entry = self.read(claim.seq)
        if entry is None or entry.kind != "claim" or entry.generation != claim.generation:
            raise StepError(Cause.FENCED, f"log entry {claim.seq} is not the claim of generation {claim.generation}")
        return LogWriter(self, entry)

    def superseded(self, claim: Claim) -> StepError | None:
        """``fenced`` when a newer generation has claimed, None while this one is the newest."""
        seq = claim.seq
        while (entry := self.read(seq + 1)) is not None:
            if entry.generation > claim.generation:
                return _fenced(claim.generation, entry.seq, entry)
            seq = entry.seq
        return None

    def entries(self) -> list[Entry]:
        """All entries, oldest first, the chain of parents checked.

        Raises:
            StepError: ``checkpoint_corrupt``: an entry does not name its predecessor.
        """
        last = self.tail()
        if last is None:
            return []
        found = in_parallel(self._known, range(1, last.seq + 1), threads=16, small=16)
        parent = ""
        for entry in found:
            if entry.parent != parent:
                raise damaged(f"commit log entry {entry.seq} has another predecessor")
            parent = entry.identity
        return found

    def live(self, tail: Entry | None) -> Iterator[Entry]:
        """The commits that no prune removed, as of ``tail``, newest first; reads only as many as are taken."""
        if tail is None:
            return
        floor = self._known(tail.pruned_through) if tail.pruned_through else None
        seq = tail.newest_through
        while seq > (floor.seq if floor else 0):
            entry = self._known(seq)
            yield entry
            seq = entry.newest
        for seq in sorted(floor.keep if floor else (), reverse=True):
            yield self._known(seq)

    def dropped(self, tail: Entry | None, seqs: Iterable[int]) -> set[int]:
        """Those of the commits numbered ``seqs`` that a prune removed, as of ``tail``; at most one read."""
        if tail is None or not tail.pruned_through:
            return set()
        floor = self._known(tail.pruned_through)
        return {seq for seq in seqs if seq < floor.seq and seq not in floor.keep}

    def _known(self, seq: int) -> Entry:
        entry = self.read(seq)
        if entry is None:
            raise damaged(f"commit log entry {seq} is missing: entries are never deleted")
        return entry


class LogWriter:
    """Appends for one claim, always at its own last entry plus one; never re-reads the tail."""

    def __init__(self, log: CommitLog, claim: Entry) -> None:
        self._log = log
        self.last = claim
        self.committed_step = -1
        """The newest step that this claim committed; -1: none."""
        self._ended: StepError | None = None

    def check(self) -> None:
        """Raise what ended this writer, if anything did."""
        if self._ended is not None:
            raise self._ended

    def append(self, **given: Any) -> Entry:
        """Append a commit or prune.

        Raises:
            StepError: ``fenced``: another entry is there. StoreError: the store failed. After either this writer
            refuses to go on, because what it appended last is not known.
        """
        self.check()
        entry = following(self.last, generation=self.last.generation, **given)
        try:
            created = self._log.create(entry)
        except StepError as error:
            self._ended = error
            raise
        if not created:
            self._ended = _fenced(entry.generation, entry.seq, self._log.read(entry.seq))
            raise self._ended
        self.last = entry
        if entry.kind == "commit":
            self.committed_step = entry.step
        return entry


def _fenced(generation: int, seq: int, other: Entry | None) -> StepError:
    by = f"generation {other.generation} ({other.owner or other.kind})" if other else "another writer"
    message = f"generation {generation} is over: {by} wrote log entry {seq}"
    return StepError(Cause.FENCED, message, quote=message)
