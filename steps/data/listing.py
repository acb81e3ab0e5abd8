"""From a uri to a manifest, by one paged listing."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.building import build_manifest
from argosy.steps.data.given_listing import given_objects, listing_uri
from argosy.steps.data.keys import READY_MARKERS, STATE_FOLDER, broken_rule
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.store_checksums import with_checksums
from argosy.steps.store import ObjectInfo, ObjectStore, open_store
from argosy.steps.store.opening import check_uri

_ASKERS = 32
_TOLD = 100_000
_AHEAD = 4096
"""Objects that are listed while the store is asked about an empty one before them."""


def list_objects(uri: str) -> Iterator[DataObject]:
    """The data below ``uri``, in the order of the store's listing, as its pages come.

    Left out: folder placeholders (empty objects whose key ends in ``/``), ready markers, and staging's own folder.
    A key that cannot be a file is named like any other: whoever takes it for one refuses it.

    Raises:
        StepError: what the store reported.
    """
    if uri.startswith("s3://"):
        # Imported here: a dataset elsewhere starts without the wire.
        from argosy.steps.transfer.pages import objects_below

        return _data(info for info in objects_below(uri) if info.size or not _is_folder(info.key))
    return data_of(open_store(uri))


def data_of(store: ObjectStore) -> Iterator[DataObject]:
    """The same by the store's own client, which drops the ``/`` at a key's end: what is empty is asked for."""
    asked: deque[tuple[DataObject, Future[ObjectInfo | None] | None]] = deque()
    with ThreadPoolExecutor(_ASKERS) as pool:
        try:
            for one, sure in _without_folders(_data(store.scan())):
                if sure and not asked:
                    yield one
                    continue
                asked.append((one, None if sure else pool.submit(store.head, one.key)))
                while asked and (len(asked) > _AHEAD or asked[0][1] is None or asked[0][1].done()):
                    yield from _answered(*asked.popleft())
            while asked:
                yield from _answered(*asked.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def _is_folder(key: str) -> bool:
    return not key or key.endswith("/")


def _answered(one: DataObject, question: Future[ObjectInfo | None] | None) -> Iterator[DataObject]:
    if question is None or question.result() is not None:
        yield one


def _data(infos: Iterable[ObjectInfo]) -> Iterator[DataObject]:
    return (DataObject(info.key, info.size, info.etag, info.version) for info in infos if not _is_marker(info.key))


def _is_marker(key: str) -> bool:
    """Ours, and sound: what is hostile is refused, whatever it is called."""
    if key.startswith(f"{STATE_FOLDER}/"):
        return not broken_rule(key.removeprefix(f"{STATE_FOLDER}/"))
    return key.endswith(READY_MARKERS) and key.rpartition("/")[2] in READY_MARKERS and not broken_rule(key)


def _without_folders(objects: Iterator[DataObject]) -> Iterator[tuple[DataObject, bool]]:
    """Each object that may be data, and whether it surely is.

    What follows tells: an empty object before objects "below" it is a folder's placeholder. Of other empty ones only
    the store knows.
    """
    empty: DataObject | None = None
    for one in objects:
        if empty is not None and not one.key.startswith(f"{empty.key}/"):
            yield empty, bool(broken_rule(empty.key))  # a key that is refused anyway is not asked for
        empty = None
        if one.size:
            yield one, True
        else:
            empty = one
    if empty is not None:
        yield empty, bool(broken_rule(empty.key))


def _told(objects: Iterator[DataObject], tell: Callable[[int], None]) -> Iterator[DataObject]:
    for number, one in enumerate(objects, 1):
        yield one
        if number % _TOLD == 0:
            tell(number)


def take_snapshot(
    uri: str,
    given: str = "",
    tell: Callable[[int], None] | None = None,
    keep: Callable[[str], bool] | None = None,
) -> DatasetManifest:
    """Freeze what one listing of the dataset shows; of large objects the checksums that the store has.

    ``given`` names a listing that is read instead (:mod:`argosy.steps.data.given_listing`); the store is not listed
    then, and placeholders and ready markers in it are left out as well. ``tell`` hears now and then how many objects
    were seen. ``keep`` says of a key whether it is wanted; None: all are.

    Raises:
        InputError: ``uri``, ``given`` or a key breaks a rule.
        StepError: ``s3_missing`` when nothing lies there, or what the store reported.
    """
    checked = check_uri(uri, "dataset uri")
    objects: Iterator[DataObject]
    if given:
        rows = given_objects(checked, listing_uri(checked, given))
        objects = (one for one in rows if not _is_marker(one.key) and (one.size or not one.key.endswith("/")))
    else:
        objects = list_objects(checked)
    if tell is not None:
        objects = _told(objects, tell)
    if keep is not None:
        objects = (one for one in objects if keep(one.key))
    manifest = build_manifest(checked, with_checksums(checked, objects))
    if not manifest.count:
        where = f"the listing {given} names no object" if given else "no object lies below this uri"
        where += _why_nothing(checked, given) if keep is None else " that --include and --exclude want"
        raise StepError(Cause.S3_MISSING, f"the dataset {checked} is empty: {where}")
    return manifest


def _why_nothing(uri: str, given: str) -> str:
    """A uri without the slash at its end looks like an object's, or like the beginning of a name."""
    folder, _, name = uri.rpartition("/")
    key = urlsplit(uri).path.strip("/")
    if given or not key:
        return ""
    with contextlib.suppress(StepError, InputError):
        if open_store(folder).head(name) is not None:
            return f"; it is an object: name {folder}, and choose it by --include {name} (argosy stage)"
    return f", no key begins with '{key}/'"
