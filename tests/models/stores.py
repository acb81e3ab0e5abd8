"""A store in a dictionary, and one that dies or fails at a chosen operation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.base import ObjectInfo


class DictStore:
    """The promises of a store, as fast as they can be kept."""

    def __init__(self) -> None:
        self.uri = "memory://dict"
        self.objects: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        if key not in self.objects:
            raise ObjectMissing(key)
        return self.objects[key]

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get(key)[start : start + length]

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        chunk = self.get_range(key, start, len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        into.write_bytes(self.get(key))
        return hashlib.sha256(self.get(key)).hexdigest()

    def put(self, key: str, data: bytes | Path) -> None:
        self.objects[key] = data if isinstance(data, bytes) else data.read_bytes()

    def upload(self, key: str, source: Any) -> tuple[str, int]:
        data = source.read_bytes() if isinstance(source, Path) else bytes(source)
        self.objects[key] = data
        return hashlib.sha256(data).hexdigest(), len(data)

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        if key in self.objects:
            return False
        self.put(key, data)
        return True

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        below = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
        return iter([ObjectInfo(k, len(v)) for k, v in sorted(self.objects.items()) if k.startswith(below)])

    def head(self, key: str) -> ObjectInfo | None:
        return ObjectInfo(key, len(self.objects[key])) if key in self.objects else None

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


class Crash(BaseException):
    """The process is dead: nothing may catch this, and nothing of it happens afterwards."""


class FragileStore:
    """Another store; the operation ``strike_in`` from now is its last (``kind`` "crash") or fails ("lose")."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner, self.uri = inner, inner.uri
        self.strike_in, self.kind, self.dead = -1, "", False

    def __getattr__(self, name: str) -> Any:
        verb: Callable[..., Any] = getattr(self.inner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.dead:
                raise Crash
            now = self.strike_in == 0
            self.strike_in -= 1
            if not now or self.kind.endswith("after"):
                result = verb(*args, **kwargs)
                if not now:
                    return result
            if self.kind.startswith("crash"):
                self.dead = True
                raise Crash
            raise StoreError(Cause.S3_THROTTLE, "made by the test")

        return call
