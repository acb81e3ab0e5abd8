"""Parts: what writers stored, compared with what the store has kept before anything is committed."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import ObjectStore, StoreError


class Forgetful:
    """A store that answers well and keeps less: ``keeps(key, bytes)`` says what."""

    def __init__(self, inner: ObjectStore, keeps: Any) -> None:
        self._inner, self._keeps, self.uri = inner, keeps, inner.uri
        self.requests: list[tuple[str, str]] = []

    def __getattr__(self, verb: str) -> Any:
        def call(key: str, *rest: Any) -> Any:
            self.requests.append((verb, key))
            result = getattr(self._inner, verb)(key, *rest)
            if verb in ("put", "upload"):
                kept = self._keeps(key, self._inner.get(key))
                self._inner.delete(key) if kept is None else self._inner.put(key, kept)
            return result

        return call


def save(checkpoints: CheckpointStore, parts: int = 3, *, shard: bytes = b"0123456789") -> Any:
    """One commit of ``parts`` parts with two shards each."""
    claim = checkpoints.claim("test")
    name = checkpoints.new_save(claim, 1)
    refs = []
    for writer in range(parts):
        part = checkpoints.part(name, writer)
        part.add_bytes(f"small-{writer}", shard)
        part.add_file(f"large-{writer}", memoryview(shard * 3))
        refs.append(part.finish())
    return checkpoints.commit(claim, name, 1, refs, kind="tensors", world_size=parts, final=False)


@pytest.mark.parametrize("victim", ["files/small-1", "files/large-2", "parts/000000.json"])
@pytest.mark.parametrize("left", [None, 0, 1, -1])
def test_a_store_that_keeps_less_is_found_before_the_commit(inner: ObjectStore, victim: str, left: int | None) -> None:
    def keeps(key: str, data: bytes) -> bytes | None:
        if not key.endswith(victim):
            return data
        return None if left is None else data[:left]

    store: Any = Forgetful(inner, keeps)
    with pytest.raises(StoreError, match=rf"the store kept (nothing|\d+ bytes) of the \d+ bytes of .*{victim}"):
        save(CheckpointStore(store, "run"))
    assert CheckpointStore(inner, "run").newest() is None


def test_a_commit_lists_once_and_reads_no_part_back(inner: ObjectStore) -> None:
    store: Any = Forgetful(inner, lambda key, data: data)
    save(CheckpointStore(store, "run"), parts=20)
    about_data = [verb for verb, key in store.requests if "data/" in key]
    assert sorted(set(about_data)) == ["list", "put", "upload"]
    assert about_data.count("list") == 1
    assert len(store.requests) <= 3 * 20 + 10


def test_two_writers_of_one_path_are_found_before_the_commit(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("test")
    name = checkpoints.new_save(claim, 1)
    refs = []
    for writer, data in enumerate((b"mine", b"hers")):
        part = checkpoints.part(name, writer)
        part.add_bytes("same", data)
        refs.append(part.finish())
    with pytest.raises(StoreError, match=r"two writers .* stored 'same'"):
        checkpoints.commit(claim, name, 1, refs, kind="tensors", world_size=2, final=False)
    assert checkpoints.newest() is None


def test_a_shard_that_no_part_names_is_no_harm(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("test")
    name = checkpoints.new_save(claim, 1)
    part = checkpoints.part(name, 0)
    part.add_bytes("mine", b"1")
    checkpoints.part(name, 1).add_bytes("of a writer that died", b"2")
    saved = checkpoints.commit(claim, name, 1, [part.finish()], kind="tensors", world_size=1, final=False)
    assert [file.path for file in checkpoints.by_digest(saved.digest).files] == ["mine"]


def test_one_part_lists_what_the_ranks_of_a_node_stored(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("test")
    name = checkpoints.new_save(claim, 7)
    shards = [
        CheckpointStore(inner, "run").part(name, node).add_file(f"rank-{rank}", memoryview(os.urandom(100 + rank)))
        for node, rank in itertools.product([0], range(8))
    ]
    leader = checkpoints.part(name, 0)
    leader.add_bytes("state.json", b"{}")
    leader.stored(shards)
    ref = leader.finish()
    assert (ref.count, ref.total_bytes) == (9, 2 + sum(100 + rank for rank in range(8)))
    saved = checkpoints.commit(claim, name, 7, [ref], kind="tensors", world_size=8, final=False)
    found = checkpoints.by_digest(saved.digest)
    checkpoints.verify(found)
    assert {file.path for file in found.files} == {"state.json", *(f"rank-{rank}" for rank in range(8))}

    other = checkpoints.part(checkpoints.new_save(claim, 8), 0)
    with pytest.raises(ValueError, match="not in the save"):
        other.stored(shards)
