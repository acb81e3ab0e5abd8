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
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import node_share
from argosy.steps.data.staging import stage_objects
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.store import open_store
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


def test_only_empty_objects_that_may_be_folders_are_asked_for(server: S3Server) -> None:
    put(server, "ds/", "ds/full/", "ds/full/deeper/", "ds/hollow/", "ds/empty", data=b"")
    put(server, "ds/full/deeper/a", "ds/full-x", "ds/z")
    assert keys(take_snapshot(URI)) == ["empty", "full-x", "full/deeper/a", "z"]
    operations = asked(server)
    assert (operations.count("HeadObject"), len(operations)) == (2, 3), "the hollow folder and the empty file"


def test_many_empty_files_keep_their_order(server: S3Server, seed: int) -> None:
    draw = random.Random(seed)
    names = sorted(f"{draw.randrange(10**9):09d}" for _ in range(300))
    for name in names:
        put(server, f"ds/{name}", data=draw.choice([b"", b"x"]))
    assert keys(take_snapshot(URI)) == names


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
    put(server, "ds/good", "ds/a\\b", "ds/c\\d", f"ds/{'x' * 300}")
    with pytest.raises(InputError, match="and 2 more") as caught:
        take_snapshot(URI)
    for key in ("a\\b", "c\\d", "x" * 300):
        assert repr(key) in str(caught.value)


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
