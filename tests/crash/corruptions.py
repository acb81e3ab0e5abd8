"""Damage to every kind of object of a run: found before a byte is used, and the newest that is whole is next."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from argosy.steps.checkpoint import Checkpoint, CheckpointStore, CorruptCheckpoint
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from tests.crash.oracle import RUN, History, save
from tests.s3 import Bucket
from tests.s3.direct import DirectStore

Damage = Callable[[bytes, bytes, random.Random], bytes | None]
"""(bytes, those of another object of the same kind, random) -> other bytes; None: gone."""


def flipped(data: bytes, other: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def zeroed(data: bytes, other: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    end = min(len(data), at + draw.randint(1, 64))
    return data[:at] + bytes(end - at) + data[end:]


def truncated(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def extended(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data + draw.choice([b"\0", b"\n", data, b" "])


def replaced(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return other


def spliced(data: bytes, other: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + other[at:]


def gone(data: bytes, other: bytes, draw: random.Random) -> None:
    return None


DAMAGES: tuple[Damage, ...] = (flipped, flipped, flipped, zeroed, truncated, extended, replaced, spliced, gone)
KINDS = ("log/", "log-hint.json", "manifests", "parts", "files", "pins", "quarantine")
RECORDS = ("log/", "pins", "quarantine")
"""What says something by being there, and is never deleted by argosy but by a person's ``unpin``."""


@dataclass(frozen=True)
class Corruption:
    """One object with other bytes."""

    kind: str
    damage: str
    key: str
    data: bytes | None


class Undetected(AssertionError):
    """Damage was not found, or what is whole was not; the message names the case."""


class Sweep:
    """One run with everything in it, and damages to it."""

    def __init__(self, folder: Path) -> None:
        self.bucket, self.history, self.folder = Bucket(), History(), folder
        self.store = DirectStore(self.bucket)
        checkpoints = CheckpointStore(self.store, RUN)
        for _ in range(9):
            claim = checkpoints.claim("restarted")
        for step in range(1, 8):
            save(checkpoints, claim, step, self.history)
        self.pinned = self.history.acknowledged[0]
        self.aside = self.history.acknowledged[4]
        checkpoints.pin(self.pinned, "for the paper")
        checkpoints.quarantine(self.aside, "loss went up")
        checkpoints.prune(3, claim)
        live = [entry.digest for entry in checkpoints.log.live(checkpoints.log.tail())]
        self.live = [checkpoints.by_digest(digest) for digest in live if digest != self.aside]
        assert len(self.live) == 4
        self.whole = dict(self.bucket.objects)

    def corruptions(self, count: int, seed: int) -> Iterator[Corruption]:
        """``count`` of them, the kinds of objects in turn."""
        draw = random.Random(seed)
        by_kind = {kind: [key for key in sorted(self.whole) if f"/{kind}" in key] for kind in KINDS}
        assert all(by_kind.values())
        made = 0
        while made < count:
            kind = KINDS[made % len(KINDS)]
            key, damage = draw.choice(by_kind[kind]), draw.choice(DAMAGES)
            data, other = self.whole[key].data, self.whole[draw.choice(by_kind[kind])].data
            after = damage(data, other, draw)
            # Without its last entry a log is an older log, without its object a pin is none: no reader can tell.
            if after == data or (kind in RECORDS and after is None):
                continue
            made += 1
            yield Corruption(kind, damage.__name__, key, after)

    def judge(self, case: Corruption) -> str:
        """``refused`` (exit 77), ``walked back``, or ``unharmed``: what was right. Raises Undetected otherwise."""
        self.bucket.replace(self.whole)
        if case.data is None:
            self.bucket.delete(case.key)
        else:
            self.bucket.put(case.key, case.data)
        try:
            return self._log(case) if case.kind == "log/" else self._resume(case)
        except (Exception, pytest.fail.Exception) as error:
            raise Undetected(f"{case.damage} in {case.key}: {type(error).__name__}: {error}") from error

    def _log(self, case: Corruption) -> str:
        checkpoints = CheckpointStore(self.store, RUN)
        assert refuses(checkpoints.log.entries), "reading the whole log does not notice"
        found: list[Checkpoint | None] = []
        # What does not need this entry goes on rightly; what needs it stops for a person.
        if refuses(lambda: found.append(checkpoints.newest())):
            return "refused"
        assert found == [self.live[0]], "another checkpoint than the newest"
        if refuses(lambda: checkpoints.claim("next")):
            return "refused"
        return "unharmed"

    def _resume(self, case: Corruption) -> str:
        checkpoints, expected = CheckpointStore(self.store, RUN), list(self.live)
        mine = [found for found in self.live if self._is_of(case.key, found)]
        for found in mine:
            expected.remove(found)
        given = [found for found in self._taken(checkpoints) if found is not None]
        assert [found.digest for found in given] == [found.digest for found in expected], "not what is whole"
        if case.kind in ("pins", "quarantine", "log-hint.json"):
            self._respected(checkpoints)
        return "walked back" if mine else "unharmed"

    def _is_of(self, key: str, found: Checkpoint) -> bool:
        return f"/data/{found.name}/" in key or (found.digest in key and "/manifests/" in key)

    def _taken(self, checkpoints: CheckpointStore) -> Iterator[Checkpoint | None]:
        """Every checkpoint that can be restored, newest first, each fetched; what is corrupt leaves no wrong file."""
        taken: set[str] = set()
        while (found := checkpoints.newest(skip=taken)) is not None:
            taken.add(found.digest)
            into = self.folder / "into"
            shutil.rmtree(into, ignore_errors=True)
            whole, told = True, ("", 0)
            try:
                checkpoints.fetch(found, into)
            except CorruptCheckpoint as error:
                whole, told = False, (error.digest, int(error.code))
            assert whole or told == (found.digest, 72)
            files = {path.name: path.read_bytes() for path in into.rglob("*") if path.is_file()}
            saved = self.history.saves[found.name]
            assert files.items() <= saved.items(), "bytes were used that nobody saved"
            assert refuses_shards(checkpoints, found) != whole, "verify and fetch differ"
            if whole:
                assert files == saved
                yield found

    def _respected(self, checkpoints: CheckpointStore) -> None:
        """A damaged pin still pins, a damaged quarantine still holds; only their words are lost."""
        claim = checkpoints.claim("next")
        checkpoints.prune(1, claim)
        left = {entry.digest for entry in checkpoints.log.live(checkpoints.log.tail())}
        assert {self.pinned, self.aside} <= left
        checkpoints.verify(checkpoints.by_digest(self.pinned))
        assert self.aside in checkpoints.quarantined()


def refuses(read: Callable[[], object]) -> bool:
    """Whether it stops for a person: ``checkpoint_corrupt``, exit code 77."""
    try:
        read()
    except StepError as error:
        if (error.cause, error.code) != (Cause.CHECKPOINT_CORRUPT, 77):
            raise
        return True
    return False


def refuses_shards(checkpoints: CheckpointStore, found: Checkpoint) -> bool:
    """Whether verifying finds a corrupt shard."""
    try:
        checkpoints.verify(found)
    except CorruptCheckpoint:
        return True
    return False
