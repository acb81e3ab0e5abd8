"""The promises of a store, each with the question that finds out whether it is kept.

A check returns what the store did wrong, "" if nothing. All are asked at the same time, below keys of their own.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from argosy.steps.store.base import ObjectMissing, ObjectStore
from argosy.steps.store.creation import create_ours

_CREATORS = 16
_ROUNDS = 3
_LARGE = (8 << 20) + (1 << 20)
"""Sent in two parts by the stores that do so."""


@dataclass(frozen=True)
class Rule:
    """A promise of stores, and the probe that sees whether one keeps it."""

    name: str
    why: str
    """What breaks without it; I1 to I12 are the invariants of docs/checkpoint-format.md."""
    check: Callable[[ObjectStore, str], str]
    refuses: bool = True
    """Whether no store without it may be trained on."""


def _create_refused(store: ObjectStore, base: str) -> str:
    key, first = f"{base}/entry", _fresh()
    if not create_ours(store, key, first):
        return "the first create of a new key was refused"
    for second in (_fresh(), first[:-1], b""):
        accepted = store.put_if_absent(key, second)
        if store.get(key) != first:
            return "a second create (If-None-Match: *) of the same key replaced the first one's bytes"
        if accepted:
            return "a second create (If-None-Match: *) of the same key was reported as done"
    return ""


def _create_wins_once(store: ObjectStore, base: str) -> str:
    for number in range(_ROUNDS):
        key, bodies = f"{base}/entry-{number}", [_fresh() for _ in range(_CREATORS)]
        together = threading.Barrier(_CREATORS)

        def create(body: bytes, key: str = key, together: threading.Barrier = together) -> bool:
            together.wait()
            return create_ours(store, key, body)

        with ThreadPoolExecutor(_CREATORS) as pool:
            won = [body for body, created in zip(bodies, pool.map(create, bodies), strict=True) if created]
        if len(won) != 1:
            return f"of {_CREATORS} creates of one key at the same time {len(won)} succeeded"
        if store.get(key) != won[0]:
            return f"of {_CREATORS} creates of one key at the same time one succeeded, and another's bytes are kept"
    return ""


def _create_after_delete(store: ObjectStore, base: str) -> str:
    key = f"{base}/entry"
    store.put(key, _fresh())
    store.delete(key)
    again = _fresh()
    if not create_ours(store, key, again):
        return "a key that was deleted cannot be created again"
    return "" if store.get(key) == again else "a key that was deleted and created again has other bytes"


def _absence_ends(store: ObjectStore, base: str) -> str:
    key, body = f"{base}/entry", _fresh()
    if _read(store, key) is not None or store.head(key) is not None or list(store.list(base)):
        return "an object that was never written is shown"
    if not create_ours(store, key, body):
        return "the first create of a key that was asked for before was refused"
    if _read(store, key) != body:
        return "a key that was asked for before it was written is still said to be absent"
    return "" if store.head(key) is not None else "HEAD still says that a key is absent that was written since"


def _read_after_write(store: ObjectStore, base: str) -> str:
    for size in (0, 1, 1000, 100_000):
        body = os.urandom(size)
        store.put(f"{base}/{size}", body)
        got = _read(store, f"{base}/{size}")
        if got != body:
            kept = (
                "nothing" if got is None else f"{len(got)} bytes, others than those," if len(got) == size else len(got)
            )
            return f"of {size} bytes that were stored {kept} came back"
    digest, size = store.upload(f"{base}/upload", memoryview(body))
    if store.get(f"{base}/upload") != body:
        return f"of {size} bytes that were uploaded (SHA-256 {digest[:12]}) others came back"
    return ""


def _read_after_overwrite(store: ObjectStore, base: str) -> str:
    key = f"{base}/entry"
    for _ in range(_ROUNDS):
        body = _fresh()
        store.put(key, body)
        with ThreadPoolExecutor(4) as pool:
            if any(got != body for got in pool.map(store.get, [key] * 4)):
                return "after an overwrite the old bytes were read"
    return ""


def _list_after_write(store: ObjectStore, base: str) -> str:
    sizes = {f"{base}/{number}/object": number for number in range(12)}
    list(store.list(base))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda item: store.put(item[0], b"x" * item[1]), sizes.items()))
    shown = {info.key: info.size for info in store.list(base)}
    if shown.keys() != sizes.keys():
        return (
            f"a listing right after {len(sizes)} objects were written shows {len(shown.keys() & sizes.keys())} of them"
        )
    if shown != sizes:
        return "a listing shows other sizes than were written"
    store.put(next(iter(sizes)), b"longer by far")
    shown = {info.key: info.size for info in store.list(base)}
    return "" if shown[next(iter(sizes))] == 13 else "a listing shows the size from before an overwrite"


def _list_after_delete(store: ObjectStore, base: str) -> str:
    keys = [f"{base}/{number}" for number in range(4)]
    for key in keys:
        store.put(key, b"x")
    list(store.list(base))
    store.delete(keys[1])
    if [info.key for info in store.list(base)] != [keys[0], *keys[2:]]:
        return "a listing right after a delete does not show what is left"
    if _read(store, keys[1]) is not None or store.head(keys[1]) is not None:
        return "an object that was deleted can still be read"
    return ""


def _head_agrees(store: ObjectStore, base: str) -> str:
    key, seen = f"{base}/entry", set()
    for _ in range(2):
        body = os.urandom(1234)
        store.put(key, body)
        found, listed = store.head(key), next(iter(store.list(base)), None)
        if found is None or found.size != 1234:
            return f"HEAD says {'nothing' if found is None else found.size} of an object of 1234 bytes"
        if listed is None or listed.etag != found.etag:
            return "HEAD and a listing name different ETags for the same object"
        seen.add(found.etag)
    return "" if len(seen) == 2 else "the ETag stayed the same when the bytes changed"


def _range_exact(store: ObjectStore, base: str) -> str:
    key, body = f"{base}/entry", os.urandom(10_000)
    store.put(key, body)
    for start, length in ((0, 1), (0, 10_000), (1, 9_998), (4095, 2), (9_999, 1), (9_990, 100), (10_000, 5)):
        got = store.get_range(key, start, length)
        if got != body[start : start + length]:
            return f"asked for {length} bytes from {start} of {len(body)}, the store gave {len(got)}, not those"
    return ""


def _large_kept(store: ObjectStore, base: str) -> str:
    key, body = f"{base}/shard", os.urandom(_LARGE)
    store.upload(key, memoryview(body))
    found = store.head(key)
    if found is None or found.size != _LARGE:
        return f"of an upload in parts of {_LARGE} bytes {'nothing' if found is None else found.size} was kept"
    for start in (0, (8 << 20) - 500, _LARGE - 1000):
        if store.get_range(key, start, 1000) != body[start : start + 1000]:
            return f"an upload in parts has other bytes at {start} than were sent"
    if store.put_if_absent(key, body[::-1]) or store.get_range(key, 0, 1000) != body[:1000]:
        return f"a second create (If-None-Match: *) with {_LARGE} bytes replaced what was there"
    return ""


def _keys_distinct(store: ObjectStore, base: str) -> str:
    keys = [f"{base}/{name}" for name in ("case", "Case", "a b", "a+b", "a%20b", "é", "x=1&y", "x")]
    for key in keys:
        store.put(key, key.encode())
    wrong = [key.rsplit("/", 1)[-1] for key in keys if _read(store, key) != key.encode()]
    if wrong:
        return f"the key {wrong[0]!r} is another object's too"
    return "" if {info.key for info in store.list(base)} == set(keys) else "a listing spells keys differently"


def _fresh() -> bytes:
    return uuid.uuid4().hex.encode()


def _read(store: ObjectStore, key: str) -> bytes | None:
    try:
        return store.get(key)
    except ObjectMissing:
        return None


RULES = (
    Rule(
        "create-refused",
        "two gangs would both commit entry n + 1, and one's commits are lost (I1, I3)",
        _create_refused,
    ),
    Rule("create-wins-once", "two gangs that restart together would hold the same claim (I3, I8)", _create_wins_once),
    Rule("absence-ends", "the end of the commit log would be looked for too early (I1)", _absence_ends),
    Rule("read-after-write", "a checkpoint that was committed could not be restored (I1, I4)", _read_after_write),
    Rule("range-exact", "every verification would fail, and good checkpoints be set aside (I2)", _range_exact),
    Rule("list-after-write", "pins and what was set aside would be overlooked (I2, I6)", _list_after_write),
    Rule("large-kept", "shards would be torn, and archives be replaced (I2, I4)", _large_kept),
    Rule("keys-distinct", "two files of one checkpoint would share an object (I4)", _keys_distinct),
    Rule("read-after-overwrite", "what is shown of a run would be old", _read_after_overwrite, refuses=False),
    Rule("list-after-delete", "pruning would try again what is gone", _list_after_delete, refuses=False),
    Rule(
        "create-after-delete", "a cache that was cleaned could not be filled again", _create_after_delete, refuses=False
    ),
    Rule("head-agrees", "a dataset that changed under a run would not be noticed (I12)", _head_agrees, refuses=False),
)
