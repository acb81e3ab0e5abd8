"""The verbs of a store, and what can go wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

UNSERVED = (Cause.STORE_UNAVAILABLE, Cause.S3_THROTTLE)
"""What passes by itself."""


class StoreError(StepError):
    """A store refused or failed; the cause says whether a retry can help."""

    @classmethod
    def of_disk(cls, action: str, path: Path, error: OSError) -> StoreError:
        """What this machine's disk or a ``file://`` store refused: ``disk_full`` or ``s3_access``."""
        cause = Cause.DISK_FULL if error.errno in (ENOSPC, EDQUOT) else Cause.S3_ACCESS
        return StoreError(cause, f"cannot {action} {path}: {error.strerror or error}", quote=str(error))


class ObjectMissing(StoreError):
    """No object has this key."""

    def __init__(self, uri: str) -> None:
        super().__init__(Cause.S3_MISSING, f"no object at {uri}")


NO_OBJECT = ("", "NoSuchKey", "NoSuchVersion", "NoSuchUpload", "NotFound", "BlobNotFound", "ResourceNotFound")
"""Codes of a 404 that say that a key is not there. Others mean something else by it: versitygw, an unknown user."""


def no_bucket(action: str, uri: str, said: str, quote: str, *, sought: bool) -> StoreError:
    """What is said of a bucket that is not there; ``sought``: what it holds is wanted, an empty one would not do."""
    parts = urlsplit(uri)
    made = f", or make the bucket: aws s3 mb s3://{parts.netloc}" if parts.scheme == "s3" else ", or make the bucket"
    text = f"cannot {action} {uri}: the bucket does not exist ({said}); correct the name{'' if sought else made}"
    return StoreError(Cause.S3_MISSING, text, quote=quote)


def refused(action: str, uri: str, said: str, quote: str) -> StoreError:
    """What is said where the keys are not known, or may not."""
    text = f"{action} {uri} was refused ({said}): allow this action on this key, or check the credentials"
    return StoreError(Cause.S3_ACCESS, text, quote=quote)


class ObjectInfo(NamedTuple):
    """One object of a listing: key below the store's root, size in bytes, ETag and version as the store has them.

    ``stored`` is when it came there as it is, in seconds since 1970; 0 where a listing does not tell.
    """

    key: str
    size: int
    etag: str = ""
    version: str = ""
    stored: float = 0.0


def check_key(key: str, uri: str) -> None:
    """Refuse keys that stores read in different ways, or that would leave a folder.

    Raises:
        StoreError: ``data_corrupt``: empty, leading or trailing ``/``, empty, ``.`` or ``..`` segment, NUL.
    """
    if "\0" in key or any(segment in ("", ".", "..") for segment in key.split("/")):
        raise StoreError(Cause.DATA_CORRUPT, f"key {key!r} cannot be used below {uri}: empty, '.' or '..' segment")


class ObjectStore(Protocol):
    """Keys are relative to ``uri``; every verb raises :class:`StoreError`.

    A write has reached stable storage (``file://``: fsync of file and folder) when the verb returns.
    """

    uri: str

    def get(self, key: str) -> bytes:
        """The whole object; :class:`ObjectMissing` if there is none."""

    def get_range(self, key: str, start: int, length: int, *, etag: str = "", version: str = "") -> bytes:
        """``length`` bytes from ``start``; fewer where the object ends; ``etag``, ``version``: only of that version."""

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``start``; how many bytes there were: fewer only where the object ends."""

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        """Stream the object into a file (fsynced, not renamed) and return its SHA-256; ``etag``: only that version."""

    def put(self, key: str, data: bytes | Path) -> None:
        """Write or overwrite, atomically."""

    def upload(self, key: str, source: Path | memoryview) -> tuple[str, int]:
        """Stream a file or memory into the store; SHA-256 (hex) and size of the very bytes that were stored.

        Memory must be contiguous and stay as it is until this returns; it is not copied as a whole.
        """

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        """Create; False when the key exists, whoever wrote it, and be it we (see ``creation.create_ours``)."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with ``prefix + "/"`` (all for ""), sorted by key."""

    def scan(self) -> Iterator[ObjectInfo]:
        """Every object as the store names them, page by page: nothing is collected, sorted or left out."""

    def head(self, key: str) -> ObjectInfo | None:
        """The object's facts, or None."""

    def delete(self, key: str) -> None:
        """Remove; a missing key is no error."""
