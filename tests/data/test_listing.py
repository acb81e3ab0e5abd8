"""A snapshot of a bucket costs its pages and nothing else, and freezes what they showed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data import changes
from argosy.steps.data.changes import check_unchanged
from argosy.steps.data.listing import data_of, list_objects, take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import node_share
from argosy.steps.data.staging import stage_objects
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.store import open_store
from argosy.steps.store.cloud import CloudStore
from tests.s3 import S3Server, on

URI = "s3://argosy-tests/ds"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with S3Server() as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL", served.endpoint)
        yield served


def put(server: S3Server, *keys: str, data: bytes = b"x") -> None:
    for key in keys:
        server.buckets["argosy-tests"].put(key, data)


def asked(server: S3Server) -> list[str]:
    """Operations since the last call."""
    found = [seen.operation for seen in server.requests]
    server.requests.clear()
    return found


def keys(manifest: DatasetManifest) -> list[str]:
    return [one.key for one in manifest]


def test_a_snapshot_is_one_paged_listing(server: S3Server) -> None:
    put(server, *(f"ds/{i:05d}" for i in range(2500)), "ds/_READY", "ds/sub/_SUCCESS", "other/x")
    manifest = take_snapshot(URI)
    assert asked(server) == ["ListObjectsV2"] * 3
    assert (manifest.count, manifest.total_bytes) == (2500, 2500)
    assert keys(manifest) == [f"{i:05d}" for i in range(2500)]


@pytest.mark.parametrize("client", ["own", "obstore"])
def test_folder_placeholders_are_no_files(client: str, server: S3Server) -> None:
    put(server, "ds/", "ds/full/", "ds/full/deeper/", "ds/hollow/", "ds/empty", data=b"")
    put(server, "ds/full/deeper/a", "ds/full-x", "ds/z")
    found = list_objects(URI) if client == "own" else data_of(CloudStore(URI))
    assert [one.key for one in found] == ["empty", "full-x", "full/deeper/a", "z"]
    # Obstore drops the "/": the hollow folder and the empty file look alike.
    assert asked(server).count("HeadObject") == (2 if client == "obstore" else 0)


@pytest.mark.parametrize("client", ["own", "obstore"])
def test_many_empty_files_keep_their_order(client: str, server: S3Server, seed: int) -> None:
    draw = random.Random(seed)
    names = sorted(f"{each:09d}" for each in draw.sample(range(10**9), 300))
    for name in names:
        put(server, f"ds/{name}", data=draw.choice([b"", b"x"]))
    found = list_objects(URI) if client == "own" else data_of(CloudStore(URI))
    assert [one.key for one in found] == names


def test_a_listing_in_another_order_gives_the_same_manifest(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"ds/{i:05d}" for i in range(3000)]
    put(server, *names)
    ordered = take_snapshot(URI)
    bucket = server.buckets["argosy-tests"]
    mixed = random.Random(1).sample(names, len(names))

    def unordered(prefix: str, after: str) -> list[str]:
        return mixed[mixed.index(after) + 1 if after else 0 :]

    monkeypatch.setattr(bucket, "keys", unordered)
    assert take_snapshot(URI).to_bytes() == ordered.to_bytes()


def test_large_objects_bring_the_checksum_of_the_store(server: S3Server) -> None:
    put(server, "ds/small")
    put(server, "ds/large", data=bytes(33 << 20))
    large, small = take_snapshot(URI)
    assert (large.checksum[:10], small.checksum) == ("crc64nvme:", "")
    operations = asked(server)
    assert (operations.count("HeadObject"), len(operations)) == (1, 2)
    assert take_snapshot(URI).digest == DatasetManifest.of(URI, [small, large]).digest


def test_every_hostile_key_is_named(server: S3Server) -> None:
    hostile = ["a\\b", "c\\d", "x" * 300, "", "a/", "a//b", "/abs", "../up", "a/./b", "nul\0", "line\nfeed", "\x1b[2J"]
    put(server, "ds/good", *(f"ds/{key}" for key in hostile))
    with pytest.raises(InputError, match="and 11 more") as caught:
        take_snapshot(URI)
    for key in hostile:
        assert repr(key) in str(caught.value)
    put(server, *(f"ds/{number}/" for number in range(100)))
    with pytest.raises(InputError, match=r"and 111 more.*, \.\.\.\)"):
        take_snapshot(URI)


@pytest.mark.parametrize("lot", ["listed", "asked"])
def test_a_change_is_named_before_the_gang_exists(lot: str, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    if lot == "asked":
        monkeypatch.setattr(changes, "LISTED", 5)
    put(server, *(f"ds/{i}" for i in range(10)))
    manifest = take_snapshot(URI)
    asked(server)
    put(server, "ds/new")
    check_unchanged(manifest)
    assert asked(server) == (["ListObjectsV2"] if lot == "listed" else ["HeadObject"] * 10)
    put(server, "ds/7", data=b"other")
    server.buckets["argosy-tests"].delete("ds/3")
    with pytest.raises(StepError, match=r"1 removed \(3\), 1 changed \(7\)"):
        check_unchanged(manifest)


def test_a_sample_of_a_large_dataset_is_spread_evenly(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LISTED", 5)
    monkeypatch.setattr(changes, "ASKED", 4)
    put(server, *(f"ds/{i}" for i in range(10)))
    manifest = take_snapshot(URI)
    asked(server)
    check_unchanged(manifest)
    assert sorted(seen.path[-1] for seen in server.requests) == ["0", "3", "6", "9"]


def test_a_small_part_of_a_large_bucket_is_asked_for(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    put(server, *(f"ds/{i:02d}" for i in range(20)))
    some = DatasetManifest.of(URI, [one for one in take_snapshot(URI) if one.key in ("03", "17")])
    monkeypatch.setattr(changes, "LISTED", 5)
    check_unchanged(some)
    put(server, "ds/17", data=b"other")
    with pytest.raises(StepError, match=r"1 changed \(17\)"):
        check_unchanged(some)


def test_what_happens_to_a_pinned_version_is_no_change(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    put(server, "ds/a", "ds/b")
    pinned = DataObject("gone", 1, '"old"', "v1")
    manifest = DatasetManifest.of(URI, [*take_snapshot(URI), pinned])
    check_unchanged(manifest)
    monkeypatch.setattr(changes, "LISTED", 0)
    check_unchanged(manifest)


def test_who_may_read_but_not_list_is_asked_by_key(server: S3Server) -> None:
    put(server, "ds/a", "ds/b")
    manifest = take_snapshot(URI)
    asked(server)
    server.plan = on("ListObjectsV2", "denied", times=100)
    check_unchanged(manifest)
    assert asked(server).count("HeadObject") == 2


def test_a_gang_costs_one_get_per_object_and_no_listing(server: S3Server, tmp_path: Path) -> None:
    put(server, *(f"ds/{i:03d}" for i in range(60)))
    store = open_store(f"file://{tmp_path}/store")
    digest = take_snapshot(URI).digest
    save_manifest(store, "run", take_snapshot(URI))
    asked(server)
    for rank in range(3):
        manifest = load_manifest(store, "run", digest)
        stage_objects(manifest, node_share(manifest, "sharded", rank, 3), tmp_path / str(rank))
    assert asked(server) == ["GetObject"] * 60
    files = [path.name for path in tmp_path.glob("[0-2]/*") if path.is_file()]
    assert sorted(files) == [f"{i:03d}" for i in range(60)]
