"""A listing that somebody gives instead of the store's own: JSON lines, CSV, or an inventory of S3.

For datasets whose listing takes too long, that may not be listed, or whose checksums are known already. Rows are
``key`` (below the dataset's uri), ``size`` in bytes, and where known ``etag``, ``version`` and ``checksum``.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.inventory import inventory_rows, is_inventory
from argosy.steps.data.keys import check_key
from argosy.steps.data.manifest import DataObject
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.opening import check_uri

COLUMNS = ("key", "size", "etag", "version", "checksum")
_GZIP = b"\x1f\x8b"


def listing_uri(dataset_uri: str, given: str) -> str:
    """Where the listing lies: a whole uri, or a key below the dataset's uri.

    Raises:
        InputError: it is neither.
    """
    if "://" in given:
        return check_uri(given, "dataset manifest")
    if given.startswith("/"):
        remedy = f"a file of this machine is {Path(given).as_uri()}, one below the dataset has no '/' before its key"
        raise InputError(f"dataset manifest = {given!r}: neither a uri nor a key; {remedy}")
    return f"{dataset_uri}/{check_key(given)}"


def given_objects(dataset_uri: str, uri: str) -> Iterator[DataObject]:
    """The objects that the listing at ``uri`` names, in its order; read as a stream, kept on disk only.

    Raises:
        InputError: the listing or a row of it cannot be understood; row, value and rule are named.
        StepError: ``s3_missing`` when it is not there, or what the store reported.
    """
    folder, _, name = uri.rpartition("/")
    store = open_store(folder)
    with _fetched(store, name) as source:
        first = source.read(1)
        source.seek(0)
        if first == "{" and is_inventory(head := source.read(1 << 20)):
            rows = inventory_rows(head, dataset_uri, lambda bucket, key: _fetched(open_store(bucket), key))
            yield from (_object(row, place, dataset_uri) for row, place in rows)
            return
        source.seek(0)
        rows = _json_rows(source, uri) if first in ("{", "[") else _csv_rows(source, uri)
        yield from (_object(row, place, dataset_uri) for row, place in rows)


@contextlib.contextmanager
def _fetched(store: ObjectStore, key: str) -> Iterator[IO[str]]:
    with tempfile.TemporaryDirectory(prefix="argosy-listing-") as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "rows"
        try:
            store.fetch(key, path)
        except StepError as error:
            if error.cause != Cause.S3_MISSING:
                raise
            text = f"{error}, where the listing is to be; a name without :// is a key below the dataset's uri"
            raise StepError(error.cause, text) from error
        raw: Any = stack.enter_context(path.open("rb"))
        if raw.read(2) == _GZIP:
            raw = stack.enter_context(gzip.open(path))
        raw.seek(0)
        try:
            yield io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")  # spreadsheets put a mark before it
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"listing {store.uri}/{key}: {error}; write it as UTF-8, plain or gzip") from error


Row = tuple[dict[str, Any], str]
"""Values by column, and the place to name in messages."""


def _json_rows(source: Iterable[str], uri: str) -> Iterator[Row]:
    for number, line in enumerate(source, 1):
        place = f"listing {uri}, line {number}"
        try:
            found = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: {error}; write one JSON object or array per line") from error
        if isinstance(found, list) and len(found) <= len(COLUMNS):
            yield dict(zip(COLUMNS, found, strict=False)), place
        elif isinstance(found, dict):
            yield found, place
        elif found is not None:
            raise InputError(f"{place}: {line[:80]!r} is no row; write an object or array of {', '.join(COLUMNS)}")


def _csv_rows(source: Iterable[str], uri: str) -> Iterator[Row]:
    reader = csv.reader(source, strict=True)
    try:
        lines = itertools.filterfalse(_is_empty, reader)
        names = [name.strip().lower() for name in next(lines, COLUMNS)]  # of nothing at all: no object
        if not {"key", "size"} <= set(names):
            raise InputError(f"listing {uri}: the first line names {names}; begin with a line key,size,etag,…")
        if twice := [name for name in COLUMNS if names.count(name) > 1]:
            raise InputError(f"listing {uri}: the first line names {twice[0]!r} twice; which is meant?")
        for cells in lines:
            place = f"listing {uri}, line {reader.line_num}"
            if len(cells) != len(names):
                raise InputError(f"{place}: {len(cells)} cells, the first line has {len(names)}; quote commas in keys")
            yield dict(zip(names, cells, strict=True)), place
    except csv.Error as error:
        raise InputError(f"listing {uri}, line {reader.line_num}: {error}; write CSV as RFC 4180 has it") from error


def _is_empty(cells: Sequence[str]) -> bool:
    return not cells


def _object(row: dict[str, Any], place: str, dataset_uri: str) -> DataObject:
    key, size = row.get("key"), row.get("size")
    if isinstance(size, str) and size.isdecimal() and len(size) < 20:
        size = int(size)
    if not isinstance(key, str) or type(size) is not int or size < 0:
        raise InputError(f"{place}: key = {key!r}, size = {size!r}; each row has a key and its size in bytes")
    etag, version, checksum = (row.get(name) or "" for name in COLUMNS[2:])
    if not all(isinstance(value, str) for value in (etag, version, checksum)):
        raise InputError(f"{place}: etag, version and checksum are texts; write them in quotes")
    if dataset_uri.startswith("s3:") and etag and not etag.endswith('"'):
        etag = f'"{etag}"'  # inventories and people leave out the quotes that are part of it
    try:
        return DataObject(key, size, etag, version, checksum).checked()
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{place}: {error}; write ALGORITHM:VALUE or nothing") from error
