"""How many requests a resume makes: the same after ten log entries and after a hundred thousand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore, CommitLog
from argosy.steps.checkpoint.entry import FORMAT, Entry, following
from argosy.steps.checkpoint.manifest import sha256
from argosy.steps.contract.layout import seq_name
from argosy.steps.store.base import ObjectInfo, ObjectMissing

MOST = 18
"""Requests of one resume: at most 11 to find the tail from the hint, two listings, floor, entry, root and parts."""


class Memory:
    """A store in a dictionary, which counts: only the log's length matters here, and 100,000 files take minutes."""

    uri = "memory://test"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: Counter[str] = Counter()

    def get(self, key: str) -> bytes:
        self.requests["get"] += 1
        if key not in self.objects:
            raise ObjectMissing(key)
        return self.objects[key]

    def put(self, key: str, data: bytes) -> None:
        self.requests["put"] += 1
        self.objects[key] = data

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.requests["create"] += 1
        return self.objects.setdefault(key, data) is data

    def delete(self, key: str) -> None:
        self.requests["delete"] += 1
        self.objects.pop(key, None)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        found = [ObjectInfo(key, len(data)) for key, data in self.objects.items() if key.startswith(prefix + "/")]
        # As a store answers: 1,000 keys a page, and a page for nothing.
        self.requests["list"] += max(1, -(-len(found) // 1000))
        yield from sorted(found, key=lambda info: info.key)


def grown(entries: int, kept: int) -> tuple[Any, CheckpointStore]:
    """A run whose log has ``entries`` entries: a real commit and prune at its end, ``kept`` damaged before them."""
    store: Any = Memory()
    checkpoints = CheckpointStore(store, "run")
    checkpoints.claim("first")
    raw, newest = store.objects["run/log/0000000001.json"], 0
    for seq in range(2, entries - 2):
        commit = seq % 3 > 0
        kind, digest, name = ("commit", f'"digest":"{seq:064x}",', f'"name":"{seq}",') if commit else ("claim", "", "")
        raw = (
            f'{{"created":0.0,{digest}"format":"{FORMAT}","generation":{1 + seq // 3},"kind":"{kind}",{name}'
            f'"newest":{newest},"nonce":"{seq:032x}","parent":"{sha256(raw)}","seq":{seq},"step":{seq}}}\n'
        ).encode()
        newest = seq if seq % 3 else newest
        store.objects[f"run/log/{seq_name(seq)}"] = raw
    prune = following(
        Entry.from_bytes(raw, entries - 3), kind="prune", generation=entries, keep=tuple(range(2, 2 + kept))
    )
    store.objects[f"run/log/{seq_name(entries - 2)}"] = prune.to_bytes()
    store.objects["run/log-hint.json"] = b'{"seq":%d}' % max((entries - 2) // 16 * 16, 1)
    claim = checkpoints.claim("newest")
    for number in range(kept):
        store.objects[f"run/quarantine/{number:064x}.json"] = b"{}"
        store.objects[f"run/pins/{number:064x}/{number + 2:010d}-{'0' * 16}.json"] = b"{}"
    name = checkpoints.new_save(claim, entries)
    part = checkpoints.part(name, 0)
    part.add_bytes("state", b"weights")
    checkpoints.commit(claim, name, entries, [part.finish()], kind="tensors", world_size=1, final=False)
    return store, checkpoints


@pytest.mark.parametrize("entries", [10, 1_000, 100_000])
def test_a_resume_costs_the_same_whatever_the_history(entries: int, capsys: pytest.CaptureFixture[str]) -> None:
    store, _ = grown(entries, kept=5)
    began = time.perf_counter()
    most = 0
    # Wherever the tail lies from the hint.
    for more in range(17):
        store.requests.clear()
        newest = CheckpointStore(store, "run").newest()
        most = max(most, store.requests.total())
        assert newest is not None
        assert newest.step == entries
        assert store.requests.total() <= MOST
        assert store.requests["list"] <= 2
        assert set(store.requests) <= {"get", "list"}
        CommitLog(store, "run").claim(f"gang {more}")
    with capsys.disabled():
        print(f"[{entries} entries: {most} requests, {time.perf_counter() - began:.2f} s for 17]", end=" ")


def test_a_hint_that_is_lost_or_wrong_costs_a_few_dozen_reads(capsys: pytest.CaptureFixture[str]) -> None:
    store, _ = grown(100_000, kept=0)
    for hint in (b"{torn", b'{"seq":0}', b'{"seq":99999999}', b'{"seq":5}'):
        store.objects["run/log-hint.json"] = hint
        store.requests.clear()
        newest = CheckpointStore(store, "run").newest()
        assert newest is not None
        assert newest.step == 100_000
        assert store.requests.total() <= 50


def test_a_thousand_set_aside_and_pinned_cost_a_page_each() -> None:
    store, _ = grown(3_000, kept=1_000)
    store.requests.clear()
    newest = CheckpointStore(store, "run").newest()
    assert newest is not None
    assert newest.step == 3_000
    assert store.requests["list"] == 2
    assert store.requests.total() <= MOST
