"""The verbs promise the same on a folder and on S3."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.creation import create_ours


def test_what_was_put_is_read(store: ObjectStore) -> None:
    store.put("a/b.bin", b"one")
    store.put("a/b.bin", b"second")
    assert store.get("a/b.bin") == b"second"
    info = store.head("a/b.bin")
    assert info is not None
    assert (info.key, info.size) == ("a/b.bin", 6)
    assert info.etag


def test_missing_objects_say_so(store: ObjectStore, tmp_path: Path) -> None:
    store.put("a/b", b"x")
    for key in ("nothing", "a", "a/b/c"):
        for read in (
            lambda key=key: store.get(key),
            lambda key=key: store.get_range(key, 0, 1),
            lambda key=key: store.fetch(key, tmp_path / "out"),
        ):
            with pytest.raises(ObjectMissing) as caught:
                read()
            assert caught.value.cause is Cause.S3_MISSING
        assert store.head(key) is None
        store.delete(key)
    assert store.get("a/b") == b"x"


def test_put_if_absent_creates_once(store: ObjectStore) -> None:
    assert store.put_if_absent("log/1", b"mine")
    assert not store.put_if_absent("log/1", b"mine")
    assert not store.put_if_absent("log/1", b"other")
    assert store.get("log/1") == b"mine"
    assert create_ours(store, "log/1", b"mine")
    assert not create_ours(store, "log/1", b"other")


def test_of_sixteen_creators_one_wins(store: ObjectStore) -> None:
    for key in ("race/1", "race/2", "race/3"):
        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(lambda n, key=key: store.put_if_absent(key, b"%d" % n), range(16)))
        assert sum(won) == 1
        assert store.get(key) == b"%d" % won.index(True)


def test_ranges(store: ObjectStore) -> None:
    store.put("r", b"0123456789")
    assert store.get_range("r", 2, 3) == b"234"
    assert store.get_range("r", 8, 10) == b"89"
    assert store.get_range("r", 0, 0) == b""
    assert store.get_range("r", 10, 5) == b""


def test_a_range_of_one_version(store: ObjectStore) -> None:
    store.put("v", b"0123456789")
    info = store.head("v")
    assert info is not None
    assert store.get_range("v", 2, 3, etag=info.etag) == b"234"
    assert store.get_range("v", 8, 10, etag=info.etag) == b"89"
    assert store.get_range("v", 10, 5, etag=info.etag) == b""
    store.put("v", b"abcdefghijk")
    with pytest.raises(StoreError, match=r"dataset changed: .*/v is no longer version") as caught:
        store.get_range("v", 2, 3, etag=info.etag)
    assert caught.value.cause == "s3_missing"


def test_list_is_sorted_and_knows_segments(store: ObjectStore) -> None:
    keys = ["p/b", "p/a/z", "p/a-1", "p/a/b c+é%20#.bin", "pq/x", "p2"]
    for key in keys:
        store.put(key, key.encode())
    listed = [info.key for info in store.list("p")]
    assert listed == sorted(key for key in keys if key.startswith("p/"))
    assert [info.key for info in store.list("p/")] == listed
    assert [info.key for info in store.list("")] == sorted(keys)
    assert list(store.list("absent")) == []
    assert {info.key: info.size for info in store.list("p")}["p/a-1"] == 5
    assert store.get("p/a/b c+é%20#.bin") == "p/a/b c+é%20#.bin".encode()


def test_list_reads_every_page(store: ObjectStore) -> None:
    keys = [f"many/{n:05d}" for n in range(1203)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b"."), keys))
    assert [info.key for info in store.list("many")] == keys


@pytest.mark.parametrize("size", [0, 1, (8 << 20) - 1, 8 << 20, (17 << 20) + 3])
def test_files_stream_both_ways_with_their_digest(store: ObjectStore, tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    data = os.urandom(size)
    source.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    assert store.upload("big/up", source) == (digest, size)
    assert store.fetch("big/up", target) == digest
    assert target.read_bytes() == data
    store.put("big/put", source)
    assert store.get("big/put") == data
    assert store.put_if_absent("big/create", source)
    assert store.get("big/create") == data


@pytest.mark.parametrize("size", [0, 1, (4 << 20) - 1, 4 << 20, (8 << 20) - 1, 8 << 20, (17 << 20) + 3])
def test_memory_streams_into_a_store_with_its_digest(store: ObjectStore, size: int) -> None:
    data = os.urandom(size)
    assert store.upload("memory", memoryview(data)) == (hashlib.sha256(data).hexdigest(), size)
    assert store.get("memory") == data


def test_memory_of_any_shape_and_a_slice_of_it_is_stored_as_its_bytes(store: ObjectStore) -> None:
    memory = memoryview(bytearray(os.urandom(9 << 20)))
    table = memory.cast("B", shape=[9, 1 << 20])
    assert store.upload("table", table) == (hashlib.sha256(memory).hexdigest(), 9 << 20)
    assert store.get("table") == bytes(memory)
    slice_ = memory[12_345 : 12_345 + (5 << 20)]
    assert store.upload("slice", slice_) == (hashlib.sha256(slice_).hexdigest(), 5 << 20)
    assert store.get("slice") == bytes(slice_)


def test_a_version_that_changed_is_not_fetched(store: ObjectStore, tmp_path: Path) -> None:
    store.put("d/x", b"first")
    info = store.head("d/x")
    assert info is not None
    assert store.fetch("d/x", tmp_path / "x", etag=info.etag) == hashlib.sha256(b"first").hexdigest()
    store.put("d/x", b"later")
    with pytest.raises(StoreError, match="dataset changed"):
        store.fetch("d/x", tmp_path / "x", etag=info.etag)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "a/../b", "./a", "..", "a\0b"])
def test_keys_that_would_leave_or_alias_are_refused(store: ObjectStore, key: str, tmp_path: Path) -> None:
    for use in (
        store.get,
        store.head,
        store.delete,
        lambda key: store.put(key, b""),
        lambda key: store.fetch(key, tmp_path / "o"),
    ):
        with pytest.raises(StoreError) as caught:
            use(key)
        assert caught.value.cause is Cause.DATA_CORRUPT


def test_delete_forgets(store: ObjectStore) -> None:
    store.put("a/b/c", b"1")
    store.put("a/d", b"1")
    store.delete("a/b/c")
    store.delete("a/b/c")
    assert [info.key for info in store.list("")] == ["a/d"]
    assert store.put_if_absent("a/b/c", b"2")
