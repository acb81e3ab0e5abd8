"""Buckets that break one promise each, as real stores and gateways have been seen to."""

from __future__ import annotations

import threading
import time

from tests.s3.bucket import Bucket, Refused, Stored

STALE_SECONDS = 1.0
"""How long what is stale stays so."""


class IgnoresAbsent(Bucket):
    """Overwrites although If-None-Match: * was sent, and answers 200."""

    def put(self, key: str, data: bytes, *, absent: bool = False, match: str = "") -> Stored:
        return super().put(key, data, match=match)


class IgnoresAbsentOnComplete(Bucket):
    """Holds the condition for single requests, ignores it when an upload in parts is completed."""

    def complete(self, name: str, key: str, parts: list[tuple[int, str]], *, absent: bool, match: str) -> Stored:
        return super().complete(name, key, parts, absent=False, match="")


class RefusesAndOverwrites(Bucket):
    """Answers 412 and keeps the new bytes."""

    def put(self, key: str, data: bytes, *, absent: bool = False, match: str = "") -> Stored:
        try:
            return super().put(key, data, absent=absent, match=match)
        except Refused:
            self.store(key, data, self.etag(data))
            raise


class ListsLate(Bucket):
    """A new object is listed only after a while."""

    def listed(self, key: str) -> Stored | None:
        stored = self.objects.get(key)
        return stored if stored and time.time() - stored.modified > STALE_SECONDS else None


class ListsDeleted(Bucket):
    """A deleted object is listed for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: dict[str, tuple[Stored, float]] = {}

    def delete(self, key: str) -> None:
        if key in self.objects:
            self.gone[key] = self.objects[key], time.monotonic()
        super().delete(key)

    def keys(self, prefix: str, after: str) -> list[str]:
        stale = [key for key in self.gone if key.startswith(prefix) and key > after and self.listed(key)]
        return sorted({*super().keys(prefix, after), *stale})

    def listed(self, key: str) -> Stored | None:
        stored, since = self.gone.get(key, (None, 0.0))
        return super().listed(key) or (stored if time.monotonic() - since < STALE_SECONDS else None)


class ReadsOld(Bucket):
    """After an overwrite the old bytes are read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.old: dict[str, Stored] = {}

    def store(self, key: str, data: bytes, etag: str) -> Stored:
        if key in self.objects:
            self.old[key] = self.objects[key]
        return super().store(key, data, etag)

    def get(self, key: str) -> Stored:
        found = super().get(key)
        return self.old.get(key, found) if time.time() - found.modified < STALE_SECONDS else found


class ForgetsAbsence(Bucket):
    """A key that was looked for in vain stays missing to readers for a while after it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.missed: dict[str, float] = {}

    def get(self, key: str) -> Stored:
        if time.monotonic() - self.missed.get(key, -STALE_SECONDS) < STALE_SECONDS:
            raise Refused(404, "NoSuchKey")
        try:
            return super().get(key)
        except Refused:
            self.missed[key] = time.monotonic()
            raise


class KeepsHalf(Bucket):
    """Answers 200 with the right ETag and keeps the first half."""

    def store(self, key: str, data: bytes, etag: str) -> Stored:
        return super().store(key, data[: len(data) // 2], etag)


class KeepsHalfOfParts(Bucket):
    """Loses the last part of an upload in parts."""

    def join(self, parts: list[bytes]) -> bytes:
        return b"".join(parts[:-1])


class ReadsOffByOne(Bucket):
    """A range begins one byte late."""

    def cut(self, stored: Stored, start: int, end: int) -> bytes:
        return (stored.data + b"\0")[start + 1 : end + 1] if start else stored.data[start:end]


class ConstantEtag(Bucket):
    """Every object has the same ETag."""

    def etag(self, data: bytes) -> str:
        return '"00000000000000000000000000000000"'


class SizeEtag(Bucket):
    """The ETag is the size: other bytes of the same length are the same version."""

    def etag(self, data: bytes) -> str:
        return f'"{len(data):032x}"'


class KeepsNothing(Bucket):
    """Answers 200 to a write and keeps nothing."""

    def store(self, key: str, data: bytes, etag: str) -> Stored:
        return Stored(data, etag, time.time())


class Expires(Bucket):
    """Drops an object half a second after it was made, as a bad lifecycle rule or a cache would."""

    def get(self, key: str) -> Stored:
        found = super().get(key)
        if time.time() - found.modified > 0.5:
            self.delete(key)
        return super().get(key)

    def listed(self, key: str) -> Stored | None:
        stored = super().listed(key)
        return stored if stored and time.time() - stored.modified < 0.5 else None


class IgnoresCase(Bucket):
    """Keys that differ in case only are one object, as on a case-insensitive file system."""

    def get(self, key: str) -> Stored:
        return super().get(key.lower())

    def check(self, key: str, *, absent: bool, match: str) -> None:
        super().check(key.lower(), absent=absent, match=match)

    def store(self, key: str, data: bytes, etag: str) -> Stored:
        return super().store(key.lower(), data, etag)

    def delete(self, key: str) -> None:
        super().delete(key.lower())


class TwoWinners(Bucket):
    """Looks, waits, writes: of creators at the same time several win. Alone, every condition holds."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, float] = {}
        self.lock = threading.Lock()

    def check(self, key: str, *, absent: bool, match: str) -> None:
        with self.lock:
            first = self.seen.setdefault(key, time.monotonic())
        # What the real one takes to make its own write visible to its own check.
        if absent and time.monotonic() - first < 0.02:
            return
        super().check(key, absent=absent, match=match)


class LosesConcurrent(Bucket):
    """A winner's bytes are replaced by those of a loser that was told 412 at the same moment."""

    def put(self, key: str, data: bytes, *, absent: bool = False, match: str = "") -> Stored:
        there = self.objects.get(key)
        try:
            return super().put(key, data, absent=absent, match=match)
        except Refused:
            if there is not None and time.time() - there.modified < 0.02:
                self.store(key, data, self.etag(data))
            raise


FOUND_BY: dict[type[Bucket], str] = {
    IgnoresAbsent: "create-refused",
    RefusesAndOverwrites: "create-refused",
    ListsLate: "list-after-write",
    ListsDeleted: "list-after-delete",
    ReadsOld: "read-after-overwrite",
    ForgetsAbsence: "absence-ends",
    KeepsHalf: "read-after-write",
    KeepsHalfOfParts: "large-kept",
    ReadsOffByOne: "range-exact",
    ConstantEtag: "head-agrees",
    SizeEtag: "head-agrees",
    KeepsNothing: "read-after-write",
    IgnoresCase: "keys-distinct",
    TwoWinners: "create-wins-once",
    LosesConcurrent: "create-wins-once",
}
"""Liar -> the rule of argosy.steps.store.probe that must name it."""

NUISANCES = (ListsDeleted, ReadsOld, ConstantEtag, SizeEtag)
"""Liars that endanger nothing that is committed: told, not refused."""

BEYOND: dict[type[Bucket], str] = {
    IgnoresAbsentOnComplete: "nothing here creates with a condition what is uploaded in parts",
    Expires: "no probe can wait for what happens later; who reads finds the object missing",
}
"""Liars that the probe does not find -> why."""
