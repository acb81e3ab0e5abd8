"""Manifests of many shards: written once, gone on with after a kill, read in part, and nothing else passes for them."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import dataset_key, dataset_shard_key, dataset_units_key
from argosy.steps.data import building, manifest, spool
from argosy.steps.data.building import build_manifest
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import node_share
from argosy.steps.data.stored_manifest import load_manifest, load_units, save_manifest, save_units
from argosy.steps.store import ObjectStore, open_store

ROWS = 100
COUNT = 1234
OBJECTS = [
    DataObject(f"d{i % 7}/{i:06d}", i * 17 % 5000, f'"{i:032x}"', "" if i % 3 else f"v{i}") for i in range(COUNT)
]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is the same at any size of a shard; spools and sorts go to disk at once."""
    for module in (building, manifest):
        monkeypatch.setattr(module, "ROWS", ROWS)
    monkeypatch.setattr(spool, "MEMORY", 0)
    monkeypatch.setattr("argosy.steps.data.sorting.LINES", 64)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(f"file://{tmp_path}/store")


def shuffled(seed: int) -> list[DataObject]:
    return random.Random(seed).sample(OBJECTS, COUNT)


def test_a_manifest_is_the_same_however_it_came_about(store: ObjectStore, seed: int) -> None:
    whole = DatasetManifest.of("s3://b/p", shuffled(seed))
    assert len(whole.shards) == 13
    nearly = sorted(OBJECTS, key=lambda one: one.key)
    nearly[700], nearly[900] = nearly[900], nearly[700]
    for objects in (OBJECTS, shuffled(seed), nearly, sorted(OBJECTS, key=lambda one: one.key)):
        built = build_manifest("s3://b/p", iter(objects))
        assert built.to_bytes() == whole.to_bytes()
        assert list(built) == list(whole)
    save_manifest(store, "run", whole)
    loaded = load_manifest(store, "run", whole.digest)
    assert (loaded.count, loaded.total_bytes) == (COUNT, sum(one.size for one in OBJECTS))
    assert list(loaded) == list(loaded) == list(whole)


def test_saving_goes_on_where_it_was_killed(store: ObjectStore, tmp_path: Path) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    save_manifest(store, "run", whole)
    store.delete(dataset_key("run", whole.digest))
    for shard in whole.shards[5:]:
        store.delete(dataset_shard_key("run", shard.sha256))
    there = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").rglob("*.gz")}
    assert len(there) == 5
    with pytest.raises(StepError, match="run snapshot first"):
        load_manifest(store, "run", whole.digest)
    save_manifest(store, "run", build_manifest("s3://b/p", shuffled(3)))
    assert list(load_manifest(store, "run", whole.digest)) == list(whole)
    assert there == {path: path.stat().st_mtime_ns for path in there}, "what was there was not written again"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: b"no gzip",
        lambda raw: _packed(_text(raw).replace(b'"v0"', b'"v1"')),
        lambda raw: _packed(_text(raw)[:-50]),
        lambda raw: _packed(_text(raw) + b'["z",1,"","",""]\n'),
    ],
)
def test_a_spoiled_shard_is_not_read(spoil: Callable[[bytes], bytes], store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    save_manifest(store, "run", whole)
    key = dataset_shard_key("run", whole.shards[0].sha256)
    spoiled = spoil(store.get(key))
    assert spoiled != store.get(key)
    store.put(key, spoiled)
    with pytest.raises(StepError, match="shard"):
        list(load_manifest(store, "run", whole.digest))


def test_a_shard_that_unpacks_to_gigabytes_takes_no_memory(store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    save_manifest(store, "run", whole)
    store.put(dataset_shard_key("run", whole.shards[0].sha256), _packed(bytes(60 << 20)))
    loaded = load_manifest(store, "run", whole.digest)
    tracemalloc.start()
    with pytest.raises(StepError, match="other content"):
        list(loaded)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


def test_a_missing_shard_is_named(store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    save_manifest(store, "run", whole)
    store.delete(dataset_shard_key("run", whole.shards[3].sha256))
    with pytest.raises(StepError, match=whole.shards[3].sha256):
        list(load_manifest(store, "run", whole.digest))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'[\n["', b'[\n["' + b"0" * 64 + b'",1,1,1],\n["'),
        (b'[\n["', b'[\n["../'),
        (b",100,", b",99,"),
        (b",100,", b',"100",'),
        (b",100,", b",100000,"),
        (b'"count": 1234', b'"count": 1235'),
        (b'"bytes": ', b'"bytes": 1'),
        (b'"shards": [', b'"shards": [], "others": ['),
        (b'"shards": [', b'"shards": {}, "others": ['),
        (b"s3://b/p", b"s3://b/q"),
    ],
)
def test_a_changed_root_is_not_read(old: bytes, new: bytes, store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    raw = whole.to_bytes().replace(old, new, 1)
    assert raw != whole.to_bytes()
    store.put(dataset_key("run", whole.digest), raw)
    with pytest.raises(StepError, match="dataset manifest"):
        load_manifest(store, "run", whole.digest)


def test_keys_out_of_order_are_not_read() -> None:
    shuffled_rows = b"".join(one.line() + b"\n" for one in (OBJECTS[1], OBJECTS[0]))
    shard = manifest.Shard.of(shuffled_rows, 0)
    with pytest.raises(StepError, match="stands after"):
        list(DatasetManifest("s3://b/p", [shard], lambda _: shuffled_rows))


@pytest.mark.parametrize("row", [b'["a\rb",1,"","",""]', b'["a" ,1,"","",""]', b'["a",-1,"","",""]', b"{}", b'["a'])
def test_rows_that_no_manifest_has_are_in_no_share(row: bytes) -> None:
    text = row + b"\n"
    foreign = DatasetManifest("s3://b/p", [manifest.Shard.of(text, 1)], lambda _: text)
    with pytest.raises(StepError, match="rows of a manifest"):
        node_share(foreign, "sharded", 0, 1)


def test_keys_that_meet_are_found_across_shards(seed: int) -> None:
    for wrong, said in ((DataObject("D3/000003", 1), "case"), (DataObject("d3", 1), "folder"), (OBJECTS[9], "two")):
        mixed = [*OBJECTS, wrong]
        random.Random(seed).shuffle(mixed)
        for objects in (mixed, sorted(mixed, key=lambda one: one.key)):
            with pytest.raises(InputError, match=said):
                build_manifest("s3://b/p", objects)


def test_shares_of_odd_keys_are_whole(store: ObjectStore) -> None:
    odd = [DataObject(key, 5) for key in ('q"', "ü/日本", "a,b", "{}", "[x]", "\U0001f600", "x", "'")]
    whole = DatasetManifest.of("s3://b/p", odd)
    shares = [list(node_share(whole, "sharded", rank, 3)) for rank in range(3)]
    assert sorted(one.key for share in shares for one in share) == sorted(one.key for one in odd)


def test_units_are_counted_once_for_all_nodes(store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    assert load_units(store, "run", whole) is None
    units = save_units(store, "run", whole)
    loaded = load_units(store, "run", whole)
    assert loaded == units
    shares = [node_share(whole, "sharded", rank, 5, loaded) for rank in range(5)]
    assert sorted(one.key for share in shares for one in share) == sorted(one.key for one in OBJECTS)
    assert [list(share) for share in shares] == [list(node_share(whole, "sharded", rank, 5)) for rank in range(5)]
    for share in shares:
        assert (share.count, share.total_bytes) == (len(list(share)), sum(one.size for one in share))


@pytest.mark.parametrize("raw", [b"", b"{}", zlib.compress(b"{}", wbits=31), b"\x1f\x8b"])
def test_spoiled_units_are_counted_again(raw: bytes, store: ObjectStore) -> None:
    whole = DatasetManifest.of("s3://b/p", OBJECTS)
    other = save_units(store, "run", DatasetManifest.of("s3://b/p", OBJECTS[:500])).to_bytes()
    for spoiled in (raw, other):
        store.put(dataset_units_key("run", whole.digest), spoiled)
        assert load_units(store, "run", whole) is None


def _text(raw: bytes) -> bytes:
    return zlib.decompress(raw, wbits=31)


def _packed(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(text) + packer.flush()
