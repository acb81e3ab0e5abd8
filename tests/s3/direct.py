"""A bucket's prefix as an ObjectStore, without HTTP: what an oracle reads with, at any instant, in microseconds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from argosy.steps.store import ObjectInfo, ObjectMissing
from tests.s3.bucket import Bucket, Refused


class DirectStore:
    """See :class:`argosy.steps.store.base.ObjectStore` for the verbs."""

    def __init__(self, bucket: Bucket, prefix: str = "") -> None:
        self.bucket, self.uri = bucket, f"memory:///{prefix}".rstrip("/")
        self._below = f"{prefix}/" if prefix else ""

    def get(self, key: str) -> bytes:
        try:
            return self.bucket.get(self._below + key).data
        except Refused as error:
            raise ObjectMissing(f"{self.uri}/{key}") from error

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get(key)[start : start + length]

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        chunk = self.get_range(key, start, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        data = self.get(key)
        into.write_bytes(data)
        return hashlib.sha256(data).hexdigest()

    def put(self, key: str, data: bytes | Path) -> None:
        self.bucket.put(self._below + key, _bytes(data))

    def upload(self, key: str, source: Path | memoryview) -> tuple[str, int]:
        data = _bytes(source)
        self.put(key, data)
        return hashlib.sha256(data).hexdigest(), len(data)

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        try:
            self.bucket.put(self._below + key, _bytes(data), absent=True)
        except Refused:
            return False
        return True

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        below = self._below + (f"{prefix.rstrip('/')}/" if prefix else "")
        for key in self.bucket.keys(below, ""):
            stored = self.bucket.objects[key]
            yield ObjectInfo(key[len(self._below) :], len(stored.data), stored.etag)

    def head(self, key: str) -> ObjectInfo | None:
        stored = self.bucket.objects.get(self._below + key)
        return ObjectInfo(key, len(stored.data), stored.etag) if stored else None

    def delete(self, key: str) -> None:
        self.bucket.delete(self._below + key)


def _bytes(source: bytes | Path | memoryview) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else bytes(source)
