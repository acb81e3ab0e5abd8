"""The checkpoints of one run: find, verify, fetch, commit, set aside, prune."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from argosy.steps.checkpoint import quarantine
from argosy.steps.checkpoint.arrival import check_arrived
from argosy.steps.checkpoint.at_hand import Near, nobody
from argosy.steps.checkpoint.candidates import candidates
from argosy.steps.checkpoint.history import History, history
from argosy.steps.checkpoint.log import Claim, CommitLog, Entry, LogWriter, joined
from argosy.steps.checkpoint.manifest import Checkpoint, PartRef, Root, Saved, ShardFile, root_key, save_name, sha256
from argosy.steps.checkpoint.pins import Pins
from argosy.steps.checkpoint.pruning import Pruner
from argosy.steps.checkpoint.reader import CheckpointReader
from argosy.steps.checkpoint.writer import PartWriter
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.store.base import ObjectMissing, ObjectStore


class CheckpointStore:
    """All verbs on one run's checkpoints. One object per claim writes; any number may read."""

    def __init__(self, store: ObjectStore, run_prefix: str) -> None:
        """``run_prefix``: ``layout.run_prefix(name, run_id)``, or "" when the store is the run's own folder."""
        self.store = store
        self.prefix = run_prefix.strip("/")
        self.log = CommitLog(store, self.prefix)
        self.reader = CheckpointReader(store, self.prefix)
        self._pins = Pins(store, self.prefix, self.log)
        self._writers: dict[Claim, LogWriter] = {}
        self._appending = threading.RLock()
        """Saves of torch DCP may overlap: of two threads that append at once one would be fenced by the other."""

    # ---- reading

    def newest(self, skip: Collection[str] = (), *, since: int = 0) -> Checkpoint | None:
        """The newest commit whose manifest tree is intact and that is neither in quarantine nor in ``skip``.

        ``since``: of this generation or a later one. No shard is read: who loads one verifies it. A few requests,
        whatever the history.
        """
        tail = self.log.tail()
        while tail is not None:
            found, passed = self._newest_as_of(tail, skip, since)
            if not passed:
                return found
            # What was passed over may have been pruned while we looked: then newer ones are there by now.
            before, tail = tail, self.log.tail()
            if tail == before:
                return found
        return None

    def _newest_as_of(self, tail: Entry, skip: Collection[str], since: int) -> tuple[Checkpoint | None, bool]:
        """The newest that can be taken, and whether one before it could not though nobody set it aside."""
        aside = {*skip, *self.quarantined_digests()}
        passed = False
        for found in candidates(self.log, self.reader, self._pins, tail, aside):
            if found.entry.generation < since:
                break
            if found.checkpoint is not None:
                return found.checkpoint, passed
            passed = passed or found.entry.digest not in aside
        return None, passed

    def explain(self) -> History:
        """What became of every commit, which one :meth:`newest` takes and why, and what it skips."""
        return history(self.log, self.reader, self._pins, self.quarantined())

    def by_digest(self, digest: str) -> Checkpoint:
        """The committed checkpoint with this digest, its manifest tree verified.

        Raises:
            StepError: ``checkpoint_mismatch``: no such checkpoint in this run, or it was never committed.
            CorruptCheckpoint: its manifest is not intact.
        """
        self.check_committed(digest)
        return self.reader.checkpoint(digest)

    def check_committed(self, digest: str) -> Root:
        """The verified root of a committed checkpoint; errors as in :meth:`by_digest`."""
        try:
            root = self.reader.root(digest)
        except ObjectMissing as error:
            where = self.reader.uri("manifests")
            message = f"no checkpoint {digest} below {where}: never committed here, or pruned"
            raise StepError(Cause.CHECKPOINT_MISMATCH, message) from error
        entry = self.log.read(root.seq)
        if entry is None or entry.digest != digest:
            raise StepError(Cause.CHECKPOINT_MISMATCH, f"checkpoint {digest} was written but never committed")
        return root

    def commits(self) -> list[Checkpoint]:
        """What can be restored, oldest first: not pruned, manifest tree intact, not in quarantine."""
        aside = self.quarantined_digests()
        walk = candidates(self.log, self.reader, self._pins, self.log.tail(), aside)
        return [found.checkpoint for found in walk if found.checkpoint is not None][::-1]

    def verify(self, checkpoint: Checkpoint) -> None:
        """Read and hash every shard.

        Raises:
            CorruptCheckpoint: names the shard.
        """
        self.reader.verify(checkpoint)

    def fetch(self, checkpoint: Checkpoint, into: Path, near: Near = nobody, whole: Collection[ShardFile] = ()) -> int:
        """All files into a folder, verified while they stream; a file has its name only when it is whole. How many
        bytes were asked of the store: not those of files that lie there already (``whole``: as they are), or that
        ``near`` gives.

        Raises:
            CorruptCheckpoint: names the shard.
        """
        return self.reader.fetch(checkpoint, into, near, whole)

    # ---- setting aside

    def quarantine(self, digest: str, reason: str) -> None:
        """Never restore this digest again; nothing is deleted."""
        quarantine.set_aside(self.store, self.prefix, digest, reason)

    def quarantined_digests(self) -> set[str]:
        """The digests in quarantine, by one listing."""
        return quarantine.set_aside_digests(self.store, self.prefix)

    def quarantined(self) -> dict[str, str]:
        """The reason by digest."""
        return quarantine.reasons(self.store, self.prefix)

    # ---- pinning

    def pin(self, digest: str, reason: str) -> None:
        """Keep this committed checkpoint until :meth:`unpin`; once this returns no prune removes it.

        Raises:
            StepError: ``checkpoint_mismatch``: not committed here, or pruned (perhaps at this very moment).
            StoreError: not known whether it is pinned; pinning again is safe.
        """
        self._pins.add(digest, self.check_committed(digest).seq, reason)

    def unpin(self, digest: str) -> bool:
        """Let pruning remove it again; False: it was not pinned."""
        return self._pins.remove(digest) > 0

    def pinned(self) -> dict[str, str]:
        """The reason by digest."""
        return self._pins.reasons()

    # ---- writing

    def claim(self, owner: str) -> Claim:
        """Take the next generation; see :meth:`argosy.steps.checkpoint.log.CommitLog.claim`."""
        return self.log.claim(owner)

    def new_save(self, claim: Claim, step: int) -> str:
        """A name for a save, never used before.

        Raises:
            InputError: this generation already committed a later step. StepError: ``fenced``.
        """
        _check_order(self._writer(claim), step)
        return save_name(step, claim.generation, uuid.uuid4().hex[:16])

    def part(self, name: str, writer: int) -> PartWriter:
        """Where writer number ``writer`` (a rank, or a node) puts its shards."""
        return PartWriter(self.store, self.prefix, name, writer)

    def commit(
        self,
        claim: Claim,
        name: str,
        step: int,
        parts: Sequence[PartRef],
        *,
        kind: Literal["tensors", "files"],
        world_size: int,
        final: bool,
        meta: dict[str, Any] | None = None,
    ) -> Saved:
        """Write the root and append it to the log; when this returns the checkpoint is durable and committed.

        All ``parts`` must have been written: one listing compares them with what the store has kept.

        Raises:
            InputError: this generation committed a later step meanwhile.
            StepError: ``fenced``. StoreError: the store kept less than it was given (nothing was committed), or it
            failed; the latter may be after the commit, which the next claim finds out.
        """
        with self._appending:
            writer = self._writer(claim)
            writer.check()
            _check_order(writer, step)
            check_arrived(self.reader, name, parts)
            root = Root(
                kind=kind,
                name=name,
                step=step,
                generation=claim.generation,
                seq=writer.last.seq + 1,
                world_size=world_size,
                created=round(time.time(), 3),
                final=final,
                total_bytes=sum(part.total_bytes for part in parts),
                parts=tuple(parts),
                meta=meta or {},
            )
            raw = root.to_bytes()
            digest = sha256(raw)
            self.store.put(joined(self.prefix, root_key(digest)), raw)
            writer.append(
                kind="commit",
                step=step,
                digest=digest,
                name=name,
                manifest=root_key(digest),
                total_bytes=root.total_bytes,
                final=final,
            )
            return Saved(step=step, digest=digest, bytes=root.total_bytes, final=final, generation=claim.generation)

    def prune(self, keep: int, claim: Claim | None = None) -> list[str]:
        """Keep the newest ``keep`` complete checkpoints, every final or pinned one and everything in quarantine.

        Also removes what failed saves of this and older generations left. ``claim`` defaults to the one that this
        object wrote with last. Returns the digests that went.

        Raises:
            StepError: ``fenced``: a newer generation rules. InputError: keep < 1, or no claim.
        """
        if claim is None:
            if not self._writers:
                raise InputError("prune needs a claim: only the current generation may delete")
            claim = list(self._writers)[-1]
        pruner = Pruner(self.store, self.prefix, self.log, self.reader, self._pins)
        with self._appending:
            return pruner.prune(self._writer(claim), keep, self.quarantined_digests())

    def superfluous(self, keep: int) -> list[Entry]:
        """The commits that :meth:`prune` would remove now, newest first; nothing is written.

        Raises:
            InputError: keep < 1.
        """
        pruner = Pruner(self.store, self.prefix, self.log, self.reader, self._pins)
        tail = self.log.tail()
        aside = self.quarantined_digests()
        return pruner.superfluous(list(self.log.live(tail)), keep, aside)

    def _writer(self, claim: Claim) -> LogWriter:
        with self._appending:
            if claim not in self._writers:
                self._writers[claim] = self.log.writer(claim)
            return self._writers[claim]


def _check_order(writer: LogWriter, step: int) -> None:
    last = max(writer.committed_step, 0)
    if step < last:
        raise InputError(f"step = {step}: step {last} is committed already; steps never go back")
