"""What happened to a dataset between two states, and whether the store still holds what a manifest says."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.listing import list_objects
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.store import ObjectStore, StoreError, open_store

LISTED = 100_000
"""Objects up to which a dataset is listed once more before its gang exists: a hundred requests, some seconds."""
ASKED = 1000
"""Objects of a larger one that are asked for instead."""
_ASKERS = 32
_NAMED = 3


@dataclass
class Keys:
    """How many keys, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < _NAMED:
            self.first.append(key)

    def text(self, word: str) -> str:
        """``2 added (a, b)``; empty when there is none."""
        more = ", ..." if self.count > len(self.first) else ""
        return f"{self.count} {word} ({', '.join(self.first)}{more})" if self.count else ""


@dataclass
class Changes:
    """Keys that differ between two states of a dataset."""

    added: Keys = field(default_factory=Keys)
    removed: Keys = field(default_factory=Keys)
    changed: Keys = field(default_factory=Keys)

    def __bool__(self) -> bool:
        return bool(self.added.count or self.removed.count or self.changed.count)

    def text(self) -> str:
        """``2 added (a, b), 1 changed (c)``: counts and the first keys."""
        parts = [self.added.text("added"), self.removed.text("removed"), self.changed.text("changed")]
        return ", ".join(filter(None, parts)) or "no difference"


def compare(old: Iterable[DataObject], new: Iterable[DataObject]) -> Changes:
    """What happened between two states, both by key; nothing is collected."""
    found = Changes()
    before, after = iter(old), iter(new)
    was, now = next(before, None), next(after, None)
    while was is not None or now is not None:
        if now is None or (was is not None and was.key < now.key):
            found.removed.add(_key(was))
            was = next(before, None)
        elif was is None or now.key < was.key:
            found.added.add(now.key)
            now = next(after, None)
        else:
            if _version(was) != _version(now):
                found.changed.add(now.key)
            was, now = next(before, None), next(after, None)
    return found


def _key(one: DataObject | None) -> str:
    return "" if one is None else one.key


def _version(one: DataObject) -> tuple[int, str, str]:
    return one.size, one.etag, one.version


def check_unchanged(manifest: DatasetManifest) -> None:
    """Confirm that the store holds what the manifest says, as far as that costs seconds.

    Up to :data:`LISTED` objects by one listing, exactly. Of larger datasets :data:`ASKED` objects, spread evenly,
    are asked for: a listing of millions takes as long as the snapshot's own did, so its answer would be no
    fresher when it is complete. Whatever changes later is named by the read itself, which asks for the version.
    Objects that were added are no fault: the manifest does not name them, nobody reads them. Nor is anything that
    happens to an object of S3 whose version id is pinned: that version stays.

    Raises:
        StepError: ``s3_missing`` naming the keys that are gone or have another version.
    """
    store = open_store(manifest.uri)
    gone = _by_listing(store, manifest) if manifest.count <= LISTED else _by_asking(store, manifest)
    if gone:
        text = f"dataset changed since the snapshot {manifest.digest[:12]}: {gone.text()} below {manifest.uri}"
        raise StepError(Cause.S3_MISSING, f"{text}; take a new snapshot, from a newer listing where you give one")


def _by_listing(store: ObjectStore, manifest: DatasetManifest) -> Changes:
    listed = {one.key: one for one in manifest if not _stays(manifest, one)}
    there: list[DataObject] = []
    try:
        for number, now in enumerate(list_objects(manifest.uri)):
            if number > 2 * LISTED:
                return _by_asking(store, manifest)  # it is a small part of what lies there
            if (was := listed.get(now.key)) is not None:
                there.append(_as_far_as_known(now, was))
    except StoreError as error:
        if error.cause != Cause.S3_ACCESS:
            raise
        return _by_asking(store, manifest)  # who gave a manifest may be allowed to read, not to list
    return compare(listed.values(), sorted(there, key=lambda one: one.key))


def _by_asking(store: ObjectStore, manifest: DatasetManifest) -> Changes:
    some = [one for one in manifest.every(-(-manifest.count // ASKED)) if not _stays(manifest, one)]

    def found(one: DataObject) -> DataObject | None:
        info = store.head(one.key)
        if info is None:
            return None
        return _as_far_as_known(DataObject(info.key, info.size, info.etag, info.version), one)

    with ThreadPoolExecutor(_ASKERS) as pool:
        return compare(some, [now for now in pool.map(found, some) if now is not None])


def _as_far_as_known(now: DataObject, was: DataObject) -> DataObject:
    # A listing that somebody gave may have no ETags; only some stores name versions in theirs.
    return DataObject(now.key, now.size, now.etag if was.etag else "", now.version if was.version else "")


def _stays(manifest: DatasetManifest, one: DataObject) -> bool:
    # S3 keeps a version when the object is written again; a generation of GCS is gone then unless the bucket keeps it.
    return bool(one.version) and manifest.uri.startswith("s3://")
