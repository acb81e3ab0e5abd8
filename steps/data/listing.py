"""From a uri to a manifest, and whether the store still holds what a manifest says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.opening import check_uri

READY_MARKERS = ("_READY", "_SUCCESS")
"""Objects of these names say that a dataset is complete; they are no data."""
_ASKERS = 32


def list_objects(store: ObjectStore) -> Iterator[DataObject]:
    """The data below the store's uri: one paged listing.

    Left out: folder placeholders (empty objects whose key ends in ``/``), ready markers, and staging's own folder.
    """
    empty: list[DataObject] = []
    for info in store.list(""):
        if info.key.rsplit("/", 1)[-1] in READY_MARKERS or info.key.startswith(f"{STATE_FOLDER}/"):
            continue
        one = DataObject(info.key, info.size, info.etag, info.version)
        if info.size:
            yield one
        else:
            empty.append(one)
    # A listing through obstore drops the "/" at the end of a key: only asking tells a placeholder from a file.
    with ThreadPoolExecutor(_ASKERS) as pool:
        for one, found in zip(empty, pool.map(store.head, [one.key for one in empty]), strict=True):
            if found is not None:
                yield one


def take_snapshot(uri: str) -> DatasetManifest:
    """List the dataset once and freeze what was seen.

    Raises:
        InputError: ``uri`` or a key breaks a rule.
        StepError: ``s3_missing`` when nothing lies there, or what the store reported.
    """
    checked = check_uri(uri, "dataset uri")
    manifest = DatasetManifest.of(checked, list_objects(open_store(checked)))
    if not manifest.count:
        raise StepError(Cause.S3_MISSING, f"the dataset {checked} is empty: no object lies below this uri")
    return manifest


@dataclass(frozen=True)
class Changes:
    """Keys that differ between two states of a dataset."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def text(self) -> str:
        """``2 added (a, b), 1 changed (c)``: counts and the first keys."""
        parts = [("added", self.added), ("removed", self.removed), ("changed", self.changed)]
        return ", ".join(f"{len(keys)} {word} ({_first(keys)})" for word, keys in parts if keys) or "no difference"


def _first(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")


def compare(old: Iterable[DataObject], new: Iterable[DataObject]) -> Changes:
    """What happened to the objects between two listings."""
    before = {one.key: one for one in old}
    after = {one.key: one for one in new}
    return Changes(
        added=tuple(key for key in after if key not in before),
        removed=tuple(key for key in before if key not in after),
        changed=tuple(key for key, one in after.items() if key in before and _version(one) != _version(before[key])),
    )


def _version(one: DataObject) -> tuple[int, str, str]:
    return one.size, one.etag, one.version


def check_unchanged(manifest: DatasetManifest) -> None:
    """Confirm by one listing that the store holds exactly what the manifest says.

    Objects that were added later are no fault: the manifest does not name them, nobody reads them.

    Raises:
        StepError: ``s3_missing`` naming the keys that are gone or have another version.
    """
    found = compare(manifest, list_objects(open_store(manifest.uri)))
    gone = Changes((), found.removed, found.changed)
    if gone:
        text = f"dataset changed since the snapshot {manifest.digest[:12]}: {gone.text()} below {manifest.uri}"
        raise StepError(Cause.S3_MISSING, f"{text}; take a new snapshot")
