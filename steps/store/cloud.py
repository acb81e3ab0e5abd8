"""S3, GCS and Azure behind the verbs of a store, over obstore."""

from __future__ import annotations

import hashlib
import math
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import UNSERVED, ObjectInfo, ObjectMissing, StoreError, check_key
from argosy.steps.store.cloud_client import open_client
from argosy.steps.store.cloud_errors import exists_or_conflicts, http_status, lost_connection, store_error
from argosy.steps.store.cloud_listing import folders_of, info_of, listed
from argosy.steps.store.hashed_chunks import HashedChunks

_CHUNK = 8 << 20
_READ_RANGE = 16 << 20
_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_SILENT_SECONDS = 60.0
T = TypeVar("T")


class CloudStore:
    """A bucket, or a prefix of one; see :class:`argosy.steps.store.base.ObjectStore` for the verbs.

    Nothing is contacted, and no credentials are looked up, before the first verb. Safe for threads.
    """

    def __init__(self, uri: str, *, retry_seconds: float = 180.0, quiet: bool = False) -> None:
        """``retry_seconds``: how long a request is repeated that is not served, which is said unless ``quiet``."""
        self.uri = uri
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._opened: Any = None
        self._silent_until = math.inf if quiet else 0.0

    @property
    def _client(self) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = open_client(self.uri, retry_seconds=self._retry_seconds)
            return self._opened

    def _at(self, key: str) -> str:
        return f"{self.uri}/{key}"

    def get(self, key: str) -> bytes:
        """The whole object."""
        check_key(key, self.uri)
        client = self._client
        try:
            return self._repeated("read", self._at(key), lambda: bytes(client.get(key).bytes()))
        except Exception as error:
            raise store_error("read", self._at(key), error) from error

    def get_range(self, key: str, start: int, length: int, *, etag: str = "", version: str = "") -> bytes:
        """``length`` bytes from ``start``; fewer where the object ends; ``etag``, ``version``: only of that version."""
        check_key(key, self.uri)
        client = self._client
        if length <= 0:
            return b""

        def read() -> bytes:
            if not etag and not version:
                return bytes(client.get_range(key, start=start, length=length))
            options: dict[str, Any] = {"range": (start, start + length)}
            options |= {"if_match": etag} if etag else {}
            options |= {"version": version} if version else {}
            return bytes(client.get(key, options=options).bytes())

        try:
            return self._repeated("read", self._at(key), read)
        except Exception as error:
            if etag and _is_another_version(error):
                raise _changed(self._at(key), etag) from error
            if http_status(error) == 416 or "greater than" in str(error):
                return b""
            raise store_error("read", self._at(key), error) from error

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        """By ranges: the client has no buffer of ours to fill."""
        filled = 0
        while chunk := self.get_range(key, start + filled, min(_READ_RANGE, len(buffer) - filled)):
            buffer[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        return filled

    def _repeated(self, action: str, uri: str, ask: Callable[[], T]) -> T:
        # The client does so, too: ten times, within three seconds where it is refused, and never in a body.
        given_up, pause = time.monotonic() + self._retry_seconds, _PAUSE
        while True:
            try:
                return ask()
            except Exception as error:
                pause = self._wait(action, uri, error, given_up, pause)

    def _wait(self, action: str, uri: str, error: Exception, given_up: float, pause: float) -> float:
        """After an error that passes by itself; how long to wait at most after the next. Any other is raised."""
        told = store_error(action, uri, error)
        if told.cause not in UNSERVED or time.monotonic() + pause > given_up:
            raise error
        self._tell(told)
        time.sleep(random.uniform(0.01, pause))
        return min(2 * pause, _LONGEST_PAUSE)

    def _tell(self, error: StoreError) -> None:
        # Minutes without a word look like a hang.
        now = time.monotonic()
        if now > self._silent_until:
            self._silent_until = now + _SILENT_SECONDS
            print(f"argosy: {error}; it is asked again for {self._retry_seconds:.0f} s", file=sys.stderr, flush=True)

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        """Stream into a file, fsync it, and return its SHA-256."""
        check_key(key, self.uri)
        try:
            with into.open("wb") as target:
                digest = self._stream(key, target, etag)
                target.flush()
                os.fsync(target.fileno())
        except OSError as error:
            raise StoreError.of_disk("write", into, error) from error
        return digest

    def _stream(self, key: str, target: Any, etag: str) -> str:
        digest = hashlib.sha256()
        for chunk in self._chunks(key, etag):
            digest.update(chunk)
            target.write(chunk)
        return digest.hexdigest()

    def _chunks(self, key: str, etag: str) -> Iterator[bytes]:
        client = self._client
        given_up, pause = time.monotonic() + self._retry_seconds, _PAUSE
        size, seen, same = -1, 0, etag
        try:
            while seen != size:
                options: dict[str, Any] = {"range": {"offset": seen}} if seen else {}
                try:
                    found = client.get(key, options={**options, "if_match": same} if same else options)
                    size, same = int(found.meta["size"]), same or found.meta.get("e_tag") or ""
                    for chunk in found.stream(min_chunk_size=_CHUNK):
                        seen += len(chunk)
                        yield bytes(chunk)
                        given_up, pause = time.monotonic() + self._retry_seconds, _PAUSE
                    break
                except Exception as error:
                    # Where it broke off in the body it goes on from there, with the same version.
                    if seen and not same:
                        raise
                    pause = self._wait("read", self._at(key), error, given_up, pause)
        except Exception as error:
            if etag and _is_another_version(error):
                raise _changed(self._at(key), etag) from error
            raise store_error("read", self._at(key), error) from error
        if seen != size:
            raise StoreError(Cause.STORE_UNAVAILABLE, f"{self._at(key)}: {seen} of {size} bytes arrived")

    def put(self, key: str, data: bytes | Path) -> None:
        """Write or overwrite; large data in parts, which stay invisible until all have arrived."""
        check_key(key, self.uri)
        client = self._client
        try:
            self._repeated("write", self._at(key), lambda: client.put(key, data, chunk_size=_CHUNK))
        except Exception as error:
            raise store_error("write", self._at(key), error) from error

    def upload(self, key: str, source: Path | memoryview) -> tuple[str, int]:
        """Stream a file or memory into the store, large ones in parts; SHA-256 and size of the bytes that were sent."""
        check_key(key, self.uri)
        client = self._client

        def send() -> HashedChunks:
            chunks = HashedChunks(source)
            if chunks.small:
                client.put(key, chunks.whole(), use_multipart=False)
            else:
                client.put(key, iter(chunks), chunk_size=chunks.chunk_size, use_multipart=True)
            return chunks

        try:
            chunks = self._repeated("write", self._at(key), send)
        except OSError as error:
            if isinstance(source, Path) and not (isinstance(error, FileNotFoundError) and source.exists()):
                raise StoreError.of_disk("read", source, error) from error
            raise store_error("write", self._at(key), error) from error
        except Exception as error:
            raise store_error("write", self._at(key), error) from error
        return chunks.digest, chunks.size

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        """Create; False when the key exists, whoever wrote it, and be it we.

        The client repeats a request whose answer was lost, so False may mean that our own first try succeeded.
        Whoever must know uses :func:`argosy.steps.store.creation.create_ours`, whose data carry a nonce: only then
        do equal bytes mean that they are ours.
        """
        from obstore.exceptions import BaseError

        check_key(key, self.uri)
        client = self._client
        body = data if isinstance(data, bytes) else data.read_bytes()

        def create() -> bool | None:
            try:
                client.put(key, body, mode="create")
            except Exception as error:
                if exists_or_conflicts(error):
                    return None if http_status(error) == 409 else False
                if lost_connection(error):
                    # Who refuses a large body before it has read it closes: its 412 is lost, each time it is asked.
                    # What a handler of signals raises meanwhile is the script's.
                    with suppress(FileNotFoundError, BaseError):
                        client.head(key)
                        return False
                raise
            return True

        given_up, at = time.monotonic() + self._retry_seconds, self._at(key)
        while time.monotonic() < given_up:
            try:
                created = self._repeated("create", at, create)
            except Exception as error:
                raise store_error("create", at, error) from error
            # 409: another request on this key was in flight; whether it created the key is to be seen.
            if created is not None or self.head(key) is not None:
                return bool(created)
            time.sleep(random.uniform(0.01, _PAUSE))
        raise StoreError(Cause.STORE_UNAVAILABLE, f"cannot create {at}: 409 conflict for {self._retry_seconds} s")

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects below the prefix, by pages, sorted by key; folder markers are not objects."""
        prefix = prefix.rstrip("/")
        if prefix:
            check_key(prefix, self.uri)
        # Some stores (S3 directory buckets) do not sort.
        found = sorted(self._collected(prefix), key=lambda info: info.key)
        below = f"{prefix}/" if prefix else ""
        parents = folders_of(info.key for info in found) if any(info.size == 0 for info in found) else set()
        yield from (
            info
            for info in found
            if info.key and info.key.startswith(below) and not (info.size == 0 and info.key in parents)
        )

    def scan(self) -> Iterator[ObjectInfo]:
        """By pages, as the store names them; of a folder marker the client tells the key without its last ``/``."""
        client = self._client
        try:
            yield from (info for info in listed(client, "") if info.key)
        except Exception as error:
            raise store_error("list", self.uri, error) from error

    def _collected(self, prefix: str) -> Sequence[ObjectInfo]:
        client, at = self._client, f"{self.uri}/{prefix}".rstrip("/")
        try:
            return self._repeated("list", at, lambda: list(listed(client, prefix)))
        except Exception as error:
            raise store_error("list", at, error) from error

    def head(self, key: str) -> ObjectInfo | None:
        """The object's facts, or None."""
        check_key(key, self.uri)
        client = self._client
        try:
            return info_of(self._repeated("look at", self._at(key), lambda: client.head(key)))
        except Exception as error:
            mapped = store_error("look at", self._at(key), error)
            if isinstance(mapped, ObjectMissing):
                return None
            raise mapped from error

    def delete(self, key: str) -> None:
        """Remove; a missing key is no error."""
        check_key(key, self.uri)
        client = self._client
        try:
            self._repeated("delete", self._at(key), lambda: client.delete(key))
        except Exception as error:
            mapped = store_error("delete", self._at(key), error)
            if not isinstance(mapped, ObjectMissing):
                raise mapped from error


def _is_another_version(error: Exception) -> bool:
    # The client, which goes on in a broken body by itself, has the status in its text only.
    return type(error).__name__ == "PreconditionError" or http_status(error) == 412


def _changed(uri: str, etag: str) -> StoreError:
    return StoreError(Cause.S3_MISSING, f"dataset changed: {uri} is no longer version {etag}")
