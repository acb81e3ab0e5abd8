"""The immutable dataset manifest: every object with the version it had, and one digest over all of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import dataset_key
from argosy.steps.data.keys import check_keys
from argosy.steps.store.base import ObjectMissing, ObjectStore

FORMAT = "argosy-dataset-1"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def check_digest(digest: str, field: str) -> str:
    """``digest`` unchanged, if it is 64 lower-case hex digits.

    Raises:
        InputError: it is not; ``field`` is named.
    """
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"{field} = {digest!r}: a digest is 64 hex digits; take it from the step that wrote it")
    return digest


@dataclass(frozen=True)
class DataObject:
    """One object: key below the dataset's uri, size in bytes, ETag and version as the store named them.

    ``sha256`` of the bytes when it is known beforehand, else empty.
    """

    key: str
    size: int
    etag: str = ""
    version: str = ""
    sha256: str = ""

    def line(self) -> str:
        """The object as canonical JSON: what the manifest's digest is taken over."""
        row = [self.key, self.size, self.etag, self.version, self.sha256]
        return json.dumps(row, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True)
class DatasetManifest:
    """All objects of a dataset, sorted by key. Make one with :meth:`of` or :meth:`from_bytes`."""

    uri: str
    objects: tuple[DataObject, ...]
    digest: str

    @classmethod
    def of(cls, uri: str, objects: Iterable[DataObject]) -> Self:
        """Sort, check the keys, and take the digest.

        Raises:
            InputError: a key that cannot be a file (see :func:`argosy.steps.data.keys.check_keys`).
        """
        ordered = tuple(sorted(objects, key=lambda one: one.key))
        check_keys(one.key for one in ordered)
        return cls(uri, ordered, _digest(uri, ordered))

    @property
    def total_bytes(self) -> int:
        """Sum of the sizes."""
        return sum(one.size for one in self.objects)

    def to_bytes(self) -> bytes:
        """JSON, one object per line, the same bytes for the same dataset."""
        head = {"format": FORMAT, "uri": self.uri, "digest": self.digest, "bytes": self.total_bytes}
        lines = ",\n".join(one.line() for one in self.objects)
        return f'{json.dumps(head)[:-1]}, "objects": [\n{lines}\n]}}\n'.encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Parse what :meth:`to_bytes` wrote; keys and digest are checked again.

        Raises:
            ValueError: not a manifest, another format, or the digest is not that of the content.
            InputError: a key that cannot be a file.
        """
        record = json.loads(raw)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ValueError(f"not a dataset manifest of format {FORMAT}")
        manifest = cls.of(str(record.get("uri")), [_object(row) for row in record.get("objects", ())])
        if manifest.digest != record.get("digest"):
            raise ValueError(f"content has digest {manifest.digest}, the manifest says {record.get('digest')}")
        return manifest


def _object(row: Any) -> DataObject:
    if not isinstance(row, list) or [type(cell) for cell in row] != [str, int, str, str, str] or row[1] < 0:
        raise ValueError(f"not an object of a dataset: {row!r}")
    return DataObject(*row)


def _digest(uri: str, objects: Iterable[DataObject]) -> str:
    # The uri is part of it: the same keys and ETags in another bucket are read from another place.
    running = hashlib.sha256(f"{FORMAT}\n{json.dumps(uri)}\n".encode())
    for one in objects:
        running.update(one.line().encode() + b"\n")
    return running.hexdigest()


def load_manifest(store: ObjectStore, name: str, digest: str) -> DatasetManifest:
    """The manifest that ``snapshot`` wrote for run ``name``.

    Raises:
        InputError: ``digest`` is no digest.
        StepError: ``s3_missing`` if no snapshot wrote it, ``data_corrupt`` if its content does not match.
    """
    key = dataset_key(name, check_digest(digest, "dataset digest"))
    try:
        manifest = DatasetManifest.from_bytes(store.get(key))
    except ObjectMissing as error:
        raise StepError(Cause.S3_MISSING, f"no dataset manifest at {store.uri}/{key}: run snapshot first") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise StepError(Cause.DATA_CORRUPT, f"dataset manifest {store.uri}/{key}: {error}", quote=str(error)) from error
    if manifest.digest != digest:
        raise StepError(Cause.DATA_CORRUPT, f"{store.uri}/{key} holds the manifest {manifest.digest}")
    return manifest
