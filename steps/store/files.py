"""``file://`` with the promises of an object store: atomic, durable, create-if-absent.

obstore's LocalStore does not fsync, so a power cut could take back a commit that was reported; this does
(file, then folder). Create-if-absent is ``link(2)``, which is atomic on local disks and on NFS.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from errno import EDQUOT, ENOSPC
from pathlib import Path
from urllib.parse import unquote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.paths import resolve_file_uri
from argosy.steps.store.base import ObjectInfo, ObjectMissing, StoreError

_CHUNK = 1 << 20
_TEMPORARY = ".argosy-part-"


def _store_error(action: str, path: Path, error: OSError) -> StoreError:
    full = error.errno in (ENOSPC, EDQUOT)
    cause = Cause.DISK_FULL if full else Cause.S3_ACCESS
    return StoreError(cause, f"cannot {action} {path}: {error.strerror}", quote=str(error))


def fsync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folder: Path) -> None:
    """``mkdir -p`` whose new entries are durable."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    fsync_folder(folder.parent)


class FileStore:
    """A store in a folder; see :class:`argosy.steps.store.base.ObjectStore` for the verbs."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.root = resolve_file_uri(unquote(urlsplit(uri).path))

    def _path(self, key: str) -> Path:
        if not key or key.startswith("/") or ".." in key.split("/") or "\0" in key:
            raise StoreError(Cause.DATA_CORRUPT, f"key {key!r} would leave the store {self.uri}")
        return self.root / key

    def get(self, key: str) -> bytes:
        """The whole object."""
        path = self._path(key)
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ObjectMissing(f"{self.uri}/{key}") from error
        except OSError as error:
            raise _store_error("read", path, error) from error

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start``."""
        path = self._path(key)
        try:
            with path.open("rb") as source:
                source.seek(start)
                return source.read(length)
        except FileNotFoundError as error:
            raise ObjectMissing(f"{self.uri}/{key}") from error
        except OSError as error:
            raise _store_error("read", path, error) from error

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        """Copy into a file, fsync it, and return its SHA-256."""
        path = self._path(key)
        digest = hashlib.sha256()
        try:
            with path.open("rb") as source, into.open("wb") as target:
                if etag and _etag(os.fstat(source.fileno())) != etag:
                    raise StoreError(Cause.S3_MISSING, f"dataset changed: {self.uri}/{key} is no longer version {etag}")
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ObjectMissing(f"{self.uri}/{key}") from error
        except OSError as error:
            raise _store_error("copy", path, error) from error
        return digest.hexdigest()

    @contextlib.contextmanager
    def _written(self, path: Path, data: bytes | Path) -> Iterator[Path]:
        part = path.parent / f"{_TEMPORARY}{uuid.uuid4().hex}"
        try:
            make_folders(path.parent)
            with part.open("wb") as target:
                if isinstance(data, bytes):
                    target.write(data)
                else:
                    with data.open("rb") as source:
                        shutil.copyfileobj(source, target, _CHUNK)
                target.flush()
                os.fsync(target.fileno())
            yield part
            fsync_folder(path.parent)
        except OSError as error:
            raise _store_error("write", path, error) from error
        finally:
            part.unlink(missing_ok=True)

    def put(self, key: str, data: bytes | Path) -> None:
        """Write or overwrite by rename."""
        path = self._path(key)
        with self._written(path, data) as part:
            part.replace(path)

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        """Create by link; False when the key exists."""
        path = self._path(key)
        with self._written(path, data) as part:
            try:
                os.link(part, path)
            except FileExistsError:
                return False
        return True

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Files below the prefix, sorted by key; half-written ones are not objects."""
        base = self._path(prefix) if prefix else self.root
        for path in sorted(base.rglob("*"), key=lambda found: found.relative_to(self.root).as_posix()):
            if path.name.startswith(_TEMPORARY):
                continue
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    found = path.stat()
                    yield ObjectInfo(path.relative_to(self.root).as_posix(), found.st_size, _etag(found))

    def head(self, key: str) -> ObjectInfo | None:
        """The file's facts, or None."""
        try:
            path = self._path(key)
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return ObjectInfo(key, found.st_size, _etag(found)) if path.is_file() else None

    def delete(self, key: str) -> None:
        """Remove the file, if there is one."""
        self._path(key).unlink(missing_ok=True)


def _etag(found: os.stat_result) -> str:
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
