"""One collective restore: the ranks agree on a checkpoint, each verifies what it loads, all learn the outcome."""

from __future__ import annotations

import mmap
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from argosy.steps import progress
from argosy.steps.checkpoint.filling import filled
from argosy.steps.checkpoint.kept import Kept
from argosy.steps.checkpoint.log import Claim, joined
from argosy.steps.checkpoint.manifest import Checkpoint, need_kind
from argosy.steps.checkpoint.reader import CorruptCheckpoint, unlike
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.stopping import checked, failure, stop
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.state import random_generators
from argosy.steps.state.files import read_into, read_state
from argosy.steps.state.filling import Read
from argosy.steps.store.base import ObjectMissing


@dataclass(frozen=True)
class Restored:
    """What a checkpoint held; tensors are on the CPU, or where ``into`` had them."""

    step: int
    """The last step that is contained: go on with the next."""
    state: dict[str, Any]
    digest: str = ""
    rng: bool = False
    """True when this rank's random generators were set as they were."""


class Restoring:
    """A restore in the making."""

    def __init__(self, store: CheckpointStore, ranks: Ranks, *, random: bool, claim: Claim | None = None) -> None:
        """``claim``: of our generation, where there is one; a newer one may have pruned what we are to load."""
        self._store = store
        self._claim = claim
        self._ranks = ranks
        self._random = random
        self._refusal: InputError | None = None
        self._touched: set[str] = set()
        """Names of tensors of ``into`` that this rank has filled from a checkpoint."""
        self._generators: bytes | None = None
        """This rank's, as they were before a checkpoint's."""
        self._reads: list[tuple[int, int]] = []
        """Bytes of each file that was read, and how many of these were asked of the store."""

    def run(self, digest: str, into: Mapping[str, Any] | None, *, strict: bool) -> Restored | None:
        """Load the checkpoint that argosy chose ("": none), every byte verified before it is used.

        An error ends every rank with its cause's exit code; bad input on one rank ends the others with 70.
        """
        began = time.monotonic()
        restored, record = self._attempt(digest, into, strict)
        self._check_all(self._ranks.gather(record))
        if self._reads:
            size, fetched = map(sum, zip(*self._reads, strict=True))
            progress.restored(size=size, fetched=fetched, seconds=time.monotonic() - began)
        return restored

    def run_newest(self, into: Mapping[str, Any] | None, *, strict: bool) -> Restored | None:
        """Load the newest intact checkpoint of a folder, or None. Rank 0 chooses, so that no two ranks load different
        ones; what any rank finds damaged is set aside: there is no supervisor to walk back for us.

        Once a damaged one has filled a part of ``into``, every rank ends unless one before it fills all that again:
        nobody may go on with a mixture, nor take it for the fresh state that None promises.
        """
        damaged = ""
        while digest := self._agreed_newest():
            restored, record = self._attempt(digest, into, strict)
            others = self._ranks.gather({**record, "touched": bool(self._touched)})
            damage = [other["message"] for other in others if other.get("cause") == Cause.CHECKPOINT_CORRUPT]
            if not damage:
                refusals = [other["input"] for other in others if "input" in other]
                if damaged and refusals:
                    _stop_mixed(damaged, f"the one before does not replace it all: {refusals[0]}")
                self._check_all(others)
                return restored
            if any(other["touched"] for other in others):
                damaged = damage[0]
            self._set_aside(digest, damage[0])
            if self._generators is not None:
                random_generators.restore(self._generators)
        if damaged:
            _stop_mixed(damaged, "there is none before it")
        return None

    def _agreed_newest(self) -> str:
        record: dict[str, Any] = {"digest": ""}
        if self._ranks.rank == 0:
            try:
                found = self._store.newest()
                record["digest"] = found.digest if found else ""
            except StepError as error:
                record = failure(error)
        return str(checked(self._ranks.broadcast(record))["digest"])

    def _set_aside(self, digest: str, why: str) -> None:
        record: dict[str, Any] = {}
        if self._ranks.rank == 0:
            print(f"argosy: {why}; set aside, trying the one before", file=sys.stderr, flush=True)
            try:
                self._store.quarantine(digest, why)
            except StepError as error:
                record = failure(error)
        checked(self._ranks.broadcast(record))

    def _attempt(
        self, digest: str, into: Mapping[str, Any] | None, strict: bool
    ) -> tuple[Restored | None, dict[str, Any]]:
        try:
            restored = self._loaded(self._store.by_digest(digest), into, strict) if digest else None
        except InputError as error:
            self._refusal = error
            return None, {"digest": digest, "input": str(error)[:500]}
        except StepError as error:
            return None, failure(self._fenced(error) or error)
        return restored, {"digest": digest}

    def _fenced(self, error: StepError) -> StepError | None:
        """The reason behind ``error`` when a newer generation rules: what we were to load is no longer ours to have."""
        if self._claim is None:
            return None
        try:
            found = self._store.log.superseded(self._claim)
        except StepError:
            return None
        return found and StepError(Cause.FENCED, f"{found} (its restore failed: {error})", quote=found.quote)

    def _check_all(self, records: list[dict[str, Any]]) -> None:
        # Damage that one rank met may be what a newer generation, as another rank found, has pruned.
        for record in sorted(records, key=lambda record: record.get("cause") != Cause.FENCED):
            checked(record)
        if self._refusal is not None:
            raise self._refusal
        for rank, record in enumerate(records):
            if "input" in record:
                code = Cause.USER_EXCEPTION.exit_code
                stop(Cause.USER_EXCEPTION, f"rank {rank} could not restore: {record['input']}", code)
            if record["digest"] != records[0]["digest"]:
                message = (
                    f"rank 0 was told to resume from {records[0]['digest'] or 'scratch'}, rank {rank} from "
                    f"{record['digest'] or 'scratch'}"
                )
                stop(Cause.CHECKPOINT_MISMATCH, message, Cause.CHECKPOINT_MISMATCH.exit_code)

    def _loaded(self, checkpoint: Checkpoint, into: Mapping[str, Any] | None, strict: bool) -> Restored:
        read = verified_reader(self._store, checkpoint, lambda *sizes: self._reads.append(sizes))
        try:
            step, state = self._read(read, into, strict)
            same = self._random and self._random_restored(checkpoint, read)
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise StepError(Cause.CHECKPOINT_MISMATCH, f"checkpoint {checkpoint.digest}: {error}") from error
        return Restored(step, state, checkpoint.digest, same)

    def _read(self, read: Read, into: Mapping[str, Any] | None, strict: bool) -> tuple[int, Any]:
        return read_state(read) if into is None else read_into(read, into, strict=strict, touched=self._touched)

    def _random_restored(self, checkpoint: Checkpoint, read: Read) -> bool:
        mine = random_generators.random_path(self._ranks.rank)
        if checkpoint.world_size == self._ranks.world_size and any(file.path == mine for file in checkpoint.files):
            found = bytes(read(mine))
            self._generators = self._generators or random_generators.capture()
            random_generators.restore(found)
            return True
        if self._ranks.rank == 0:
            print(
                f"argosy: random generators not restored: {checkpoint.world_size} ranks saved (with save_rng?), "
                f"{self._ranks.world_size} restore",
                file=sys.stderr,
                flush=True,
            )
        return False


def _stop_mixed(damage: str, why: str) -> NoReturn:
    message = f"{damage} set aside; `into` is filled in part from it, and {why}; start again with a fresh state"
    stop(Cause.CHECKPOINT_CORRUPT, message, Cause.CHECKPOINT_CORRUPT.exit_code)


def verified_reader(
    store: CheckpointStore, checkpoint: Checkpoint, advance: Callable[[int, int], None] = lambda size, fetched: None
) -> Read:
    """Gives the bytes of a path of the checkpoint, hashed before they are given out; may be called by several threads.

    The store is asked for what this pod does not hold; ``advance`` is told of each file's size and of how much of it
    was asked for.

    Raises:
        StepError: ``checkpoint_mismatch`` for an opaque checkpoint. The reader raises CorruptCheckpoint, and
        ``host_oom`` where there is no memory for a file.
    """
    need_kind(checkpoint, checkpoint.digest, "tensors")
    files, kept = {file.path: file for file in checkpoint.files}, Kept.given()

    def read(path: str) -> memoryview:
        if path not in files:
            raise CorruptCheckpoint(checkpoint.digest, path, "the manifest does not list it")
        file, key = files[path], joined(store.prefix, files[path].key)
        view = _memory(file.size)  # one buffer; tensors are views of it
        if kept.read(file, view):
            advance(file.size, 0)
            return view
        try:
            seen, found = filled(view, lambda at, piece: store.store.read_into(key, at, piece))
        except ObjectMissing as error:
            raise CorruptCheckpoint(checkpoint.digest, file.key, "missing") from error
        if found != file.sha256:
            raise CorruptCheckpoint(checkpoint.digest, file.key, unlike(file, seen))
        advance(file.size, file.size)
        return view

    return read


def _memory(size: int) -> memoryview:
    """Not a bytearray: that is written with zeros first, which costs a third of what hashing does.

    Nor huge pages: where memory is fragmented, or the host has to back it, to get one takes longer than its 512 faults.
    """
    try:
        return memoryview(mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))[:size]
    except OSError as error:  # RLIMIT_AS (ulimit -v)
        raise StepError(Cause.HOST_OOM, f"no room to load a file of {size / 1e9:.1f} GB: {error}") from error
