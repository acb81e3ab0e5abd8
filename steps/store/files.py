"""``file://`` with the promises of an object store: atomic, durable, create-if-absent.

obstore's LocalStore does not fsync, so a power cut could take back a commit that was reported; this does
(file, then folder). Create-if-absent is ``link(2)``, which is atomic on local disks and on NFS.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.paths import resolve_file_uri
from argosy.steps.store.base import ObjectInfo, ObjectMissing, StoreError, check_key
from argosy.steps.store.durable_write import write_durably

_CHUNK = 4 << 20
_PARTS = ".argosy-parts"
"""Folder of half-written objects at the store's root: one place, so that what a kill left is found and removed."""
_PART_SECONDS = 3600
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


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
    _share(folder)
    fsync_folder(folder.parent)


def _share(folder: Path) -> None:
    """Who may write to the folder above may write here, whatever the umask: on a cluster's volume the laptop pushes the
    code and pods of another user write the rest. A sticky folder (/tmp) is shared by strangers.
    """
    above, own = folder.parent.stat().st_mode, folder.stat().st_mode
    shared = above & (stat.S_IWGRP | stat.S_IWOTH)
    if shared & ~own and not above & stat.S_ISVTX:
        with contextlib.suppress(OSError):  # another made it in between, or the volume has no modes
            folder.chmod(stat.S_IMODE(own) | shared)


class FileStore:
    """A store in a folder; see :class:`argosy.steps.store.base.ObjectStore` for the verbs."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.root = resolve_file_uri(unquote(urlsplit(uri).path))
        self._durable: set[Path] = set()

    def _path(self, key: str) -> Path:
        check_key(key, self.uri)
        if key.split("/", 1)[0] == _PARTS:
            raise StoreError(Cause.DATA_CORRUPT, f"key {key!r} is reserved in the store {self.uri}")
        return self.root / key

    def get(self, key: str) -> bytes:
        """The whole object."""
        path = self._path(key)
        with self._reading(key, path):
            return path.read_bytes()

    def get_range(self, key: str, start: int, length: int, *, etag: str = "", version: str = "") -> bytes:
        """``length`` bytes from ``start``; fewer where the object ends; ``etag``: only of that version."""
        path = self._path(key)
        with self._reading(key, path), path.open("rb") as source:
            source.seek(start)
            data = source.read(max(length, 0))
            # Asked after the read: a file that is written in place has its new time before its new bytes.
            if etag and file_etag(os.fstat(source.fileno())) != etag:
                raise _changed(f"{self.uri}/{key}", etag)
            return data

    def read_into(self, key: str, start: int, buffer: memoryview) -> int:
        """Without a copy in between."""
        path = self._path(key)
        filled = 0
        with self._reading(key, path), path.open("rb", buffering=0) as source:
            source.seek(start)
            while filled < len(buffer) and (count := source.readinto(buffer[filled:])):
                filled += count
        return filled

    @contextlib.contextmanager
    def _reading(self, key: str, path: Path) -> Iterator[None]:
        try:
            yield
        except _ABSENT as error:
            raise ObjectMissing(f"{self.uri}/{key}") from error
        except OSError as error:
            raise StoreError.of_disk("read", path, error) from error

    def fetch(self, key: str, into: Path, *, etag: str = "") -> str:
        """Copy into a file, fsync it, and return its SHA-256."""
        path = self._path(key)
        with contextlib.ExitStack() as stack:
            with self._reading(key, path):
                source = stack.enter_context(path.open("rb"))
            before = file_etag(os.fstat(source.fileno()))
            if etag and before != etag:
                raise _changed(f"{self.uri}/{key}", etag)
            try:
                target = stack.enter_context(into.open("wb"))
                digest, _ = _copy(source.read, target.write)
                target.flush()
                os.fsync(target.fileno())
            except OSError as error:
                raise StoreError.of_disk("write", into, error) from error
            if file_etag(os.fstat(source.fileno())) != before:
                raise _changed(f"{self.uri}/{key}", before)
        return digest

    def put(self, key: str, data: bytes | Path) -> None:
        """Write or overwrite by rename."""
        self._store(key, data, os.replace)

    def upload(self, key: str, source: Path | memoryview) -> tuple[str, int]:
        """Stream a file or memory into the store; SHA-256 and size of the bytes that were stored."""
        return self._store(key, source, os.replace)

    def put_if_absent(self, key: str, data: bytes | Path) -> bool:
        """Create by link; False when the key exists."""
        created = True

        def link(part: Path, path: Path) -> None:
            nonlocal created
            try:
                os.link(part, path)
            except FileExistsError:
                # NFS repeats a link whose answer was lost and then reports what it did itself.
                created = part.stat().st_nlink > 1

        self._store(key, data, link)
        return created

    def _store(
        self, key: str, data: bytes | Path | memoryview, publish: Callable[[Path, Path], None]
    ) -> tuple[str, int]:
        path = self._path(key)
        part = self.root / _PARTS / uuid.uuid4().hex
        try:
            first = part.parent not in self._durable
            self._make(part.parent)
            if first:
                part.touch()
                _remove_stale(part)  # before the write: the disk may be full of them
            written = write_durably(part, data)
            self._publish(part, path, publish)
            # Also when another writer was first: who is told that the key exists may rely on it.
            fsync_folder(path.parent)
        except OSError as error:
            if isinstance(data, Path) and error.filename == str(data):
                raise StoreError.of_disk("read", data, error) from error
            raise StoreError.of_disk("write", path, error) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        return written

    def _publish(self, part: Path, path: Path, publish: Callable[[Path, Path], None]) -> None:
        for _ in range(16):
            try:
                self._make(path.parent)
                return publish(part, path)
            except FileNotFoundError:
                # A delete removed the empty folder between the two lines above.
                self._durable.discard(path.parent)
                if not part.exists():
                    raise
        publish(part, path)

    def _make(self, folder: Path) -> None:
        """Folders up to the root, each durable in its parent, also when another process made it a moment ago."""
        if folder in self._durable and folder.is_dir():
            return
        make_folders(folder)
        if folder != self.root:
            self._make(folder.parent)
            fsync_folder(folder.parent)
        self._durable.add(folder)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Files below the prefix, sorted by key; half-written ones are not objects. Links to folders are followed."""
        prefix = prefix.rstrip("/")
        base = self._path(prefix) if prefix else self.root
        try:
            found = sorted(_files(base, f"{prefix}/" if prefix else "", frozenset()), key=lambda info: info.key)
        except OSError as error:
            raise StoreError.of_disk("list", base, error) from error
        yield from found

    def scan(self) -> Iterator[ObjectInfo]:
        """Files as the disk names them, folder by folder; half-written ones are not objects."""
        try:
            yield from _files(self.root, "", frozenset())
        except OSError as error:
            raise StoreError.of_disk("list", self.root, error) from error

    def head(self, key: str) -> ObjectInfo | None:
        """The file's facts, or None."""
        path = self._path(key)
        try:
            with self._reading(key, path):
                found = path.stat()
        except ObjectMissing:
            return None
        return _info(key, found) if path.is_file() else None

    def delete(self, key: str) -> None:
        """Remove the file, if there is one, and its folder once that is empty; durable on return."""
        path = self._path(key)
        try:
            path.unlink()
            fsync_folder(path.parent)
        except _ABSENT:
            return
        except OSError as error:
            raise StoreError.of_disk("delete", path, error) from error
        with contextlib.suppress(OSError):
            for folder in path.parents:
                if folder == self.root:
                    break
                folder.rmdir()
                self._durable.discard(folder)


def _info(key: str, found: os.stat_result) -> ObjectInfo:
    # A copy may keep the time of what it copies; that of the inode is when it came here.
    return ObjectInfo(key, found.st_size, file_etag(found), stored=found.st_ctime)


def _changed(uri: str, etag: str) -> StoreError:
    return StoreError(Cause.S3_MISSING, f"dataset changed: {uri} is no longer version {etag}")


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], int]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while chunk := read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        write(chunk)
    return digest.hexdigest(), size


def _remove_stale(fresh: Path) -> None:
    """Remove what killed writers left; a live writer touches its part far more often than this. By the disk's own
    clock, which has just stamped ``fresh``: by one that is ahead of it every writer's part is old.
    """
    now = fresh.stat().st_mtime
    for part in fresh.parent.iterdir():
        with contextlib.suppress(OSError):
            if now - part.stat().st_mtime > _PART_SECONDS:
                part.unlink()


def _files(folder: Path, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[ObjectInfo]:
    # Of a folder only its folders are held, not its files: there may be millions.
    folders: list[str] = []
    try:
        identity = folder.stat()
        here = (identity.st_dev, identity.st_ino)
        if here in above:
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == _PARTS:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_dir():
                        folders.append(entry.name)
                    elif entry.is_file():
                        found = entry.stat()
                        yield _info(f"{prefix}{entry.name}", found)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in folders:
        yield from _files(folder / name, f"{prefix}{name}/", above | {here})


def file_etag(found: os.stat_result) -> str:
    """What stands for an ETag: another inode, mtime or size is another version."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
