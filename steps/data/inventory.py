"""S3 Inventory as a listing: a ``manifest.json`` that names gzipped CSV files without a head line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Any
from urllib.parse import unquote_plus, urlsplit

from argosy.steps.contract.errors import InputError

Open = Callable[[str, str], AbstractContextManager[IO[str]]]
"""From (uri of a bucket, key) to the object's text."""
_NEEDED = {"Bucket", "Key", "Size"}


def is_inventory(head: str) -> bool:
    """Whether a document is the ``manifest.json`` of an inventory."""
    try:
        found = json.loads(head)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "fileSchema" in found and isinstance(found.get("files"), list)


def inventory_rows(head: str, dataset_uri: str, opened: Open) -> Iterator[tuple[dict[str, Any], str]]:
    """The current objects below ``dataset_uri``, as rows and the place of each; other objects are left out.

    Raises:
        InputError: not CSV, columns are missing, or it is an inventory of another bucket.
    """
    found = json.loads(head)
    bucket = urlsplit(dataset_uri).netloc
    names = [name.strip() for name in str(found["fileSchema"]).split(",")]
    if found.get("fileFormat") != "CSV" or not set(names) >= _NEEDED:
        text = f"the inventory is {found.get('fileFormat')} of {', '.join(names)}"
        raise InputError(f"{text}; let S3 write CSV with Size and ETag")
    if found.get("sourceBucket") != bucket:
        raise InputError(f"the inventory is of bucket {found.get('sourceBucket')!r}, the dataset lies in {bucket!r}")
    prefix = urlsplit(dataset_uri).path.strip("/")
    below = f"{prefix}/" if prefix else ""
    target = f"s3://{str(found.get('destinationBucket', '')).rpartition(':')[2]}"
    for file in found["files"]:
        if not isinstance(file, dict) or not isinstance(file.get("key"), str):
            raise InputError(f"the inventory's files has {str(file)[:80]!r}: each has a key; give the whole document")
        with opened(target, file["key"]) as source:
            for number, cells in enumerate(_cells(source, file["key"]), 1):
                row = dict(zip(names, cells, strict=False))
                key = unquote_plus(row.get("Key", ""))
                old = row.get("IsLatest") == "false" or row.get("IsDeleteMarker") == "true"
                if key.startswith(below) and not old:
                    yield _row(row, key[len(below) :]), f"inventory {file['key']}, line {number}"


def _cells(source: IO[str], key: str) -> Iterator[list[str]]:
    reader = csv.reader(source)
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"inventory {key}, line {reader.line_num}: {error}; fetch what S3 wrote again") from error


def _row(row: dict[str, str], key: str) -> dict[str, Any]:
    return {"key": key, "size": row.get("Size"), "etag": row.get("ETag", ""), "version": row.get("VersionId", "")}
