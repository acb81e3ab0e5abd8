"""A manifest is the same bytes for the same dataset, and nothing else can pass for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import dataset_key
from argosy.steps.data.changes import check_unchanged, compare
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.stored_manifest import load_manifest
from argosy.steps.store import open_store

OBJECTS = [DataObject("b", 2, "e2"), DataObject("a/x", 1, "e1", "v1"), DataObject("ü", 0)]


def test_order_does_not_matter_content_does() -> None:
    one = DatasetManifest.of("s3://b/p", OBJECTS)
    shuffled = random.Random(1).sample(OBJECTS, 3)
    assert DatasetManifest.of("s3://b/p", shuffled).to_bytes() == one.to_bytes()
    others = [
        DatasetManifest.of("s3://b/q", OBJECTS),
        DatasetManifest.of("s3://b/p", OBJECTS[:2]),
        DatasetManifest.of("s3://b/p", [*OBJECTS[:2], DataObject("ü", 1)]),
        DatasetManifest.of("s3://b/p", [DataObject("b", 2, "e3"), *OBJECTS[1:]]),
        DatasetManifest.of("s3://b/p", [OBJECTS[0], DataObject("a/x", 1, "e1", "v2"), OBJECTS[2]]),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 6


def test_round_trip() -> None:
    manifest = DatasetManifest.of("s3://b/p", OBJECTS)
    assert DatasetManifest.from_bytes(manifest.to_bytes()) == manifest
    assert json.loads(manifest.to_bytes())["bytes"] == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b'"e1"', b'"e9"'),
        lambda raw: raw.replace(b"s3://b/p", b"s3://c/p"),
        lambda raw: raw.replace(b'"b",2', b'"b",-2'),
        lambda raw: raw.replace(b'"b",2', b'"b","2"'),
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"[]",
        lambda raw: b"",
        lambda raw: raw.replace(b"argosy-dataset-2", b"argosy-dataset-9"),
        lambda raw: raw.replace(b'"a/x"', b'"../x"'),
    ],
)
def test_a_changed_manifest_is_not_read(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    manifest = DatasetManifest.of("s3://b/p", OBJECTS)
    store = open_store(f"file://{tmp_path}")
    changed = change(manifest.to_bytes())
    assert changed != manifest.to_bytes()
    store.put(dataset_key("run", manifest.digest), changed)
    with pytest.raises((StepError, InputError)):
        load_manifest(store, "run", manifest.digest)


def test_another_datasets_manifest_under_our_digest_is_not_read(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    ours, other = DatasetManifest.of("s3://b/p", OBJECTS), DatasetManifest.of("s3://b/p", OBJECTS[:1])
    store.put(dataset_key("run", ours.digest), other.to_bytes())
    with pytest.raises(StepError, match="holds the manifest"):
        load_manifest(store, "run", ours.digest)


def test_listing_leaves_out_markers_and_our_own_state(dataset: Callable[..., DatasetManifest]) -> None:
    manifest = dataset({"a": b"1", "_READY": b"", "d/_SUCCESS": b"", ".argosy-stage/lock": b"", "d/_READY.txt": b"2"})
    assert [one.key for one in manifest] == ["a", "d/_READY.txt"]


def test_changes_are_named(dataset: Callable[..., DatasetManifest], tmp_path: Path) -> None:
    before = dataset({"a": b"1", "b": b"1", "c": b"1"})
    (tmp_path / "source" / "a").unlink()
    after = dataset({"b": b"22", "d": b"1"})
    found = compare(before, after)
    assert (found.added.first, found.removed.first, found.changed.first) == (["d"], ["a"], ["b"])
    with pytest.raises(StepError, match=r"dataset changed.*removed \(a\).*changed \(b\)"):
        check_unchanged(before)
    check_unchanged(take_snapshot(after.uri))


def test_added_objects_are_no_change_for_the_pinned_manifest(dataset: Callable[..., DatasetManifest]) -> None:
    before = dataset({"a": b"1"})
    dataset({"b": b"1"})
    check_unchanged(before)
