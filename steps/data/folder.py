"""A staged folder on disk: who works on it, what it already holds, and how a file gets its name.

    FOLDER/<key>                           the data
    FOLDER/.argosy-stage/lock              one stager at a time (the kernel releases it when the holder dies)
    FOLDER/.argosy-stage/parts/            files in flight; emptied at each start and end
    FOLDER/.argosy-stage/journal.jsonl     what was published, file by file: a killed stager resumes from it
    FOLDER/.argosy-stage/complete.jsonl    the marker, written last: dataset, share, and every file's SHA-256

Names are opened relative to folder handles without following symbolic links, so that nothing that changes
meanwhile can lead a write out of the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from errno import EISDIR, ELOOP, ENOTDIR, ENOTEMPTY
from pathlib import Path

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.records import FileRecord, Marker, read_marker, read_records
from argosy.steps.store.files import make_folders

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_JOURNAL = "journal.jsonl"
_COMPLETE = "complete.jsonl"
_FOREIGN_ALLOWED = {"lost+found", STATE_FOLDER}
_IN_THE_WAY = (EISDIR, ELOOP, ENOTDIR, ENOTEMPTY)
_CHUNK = 1 << 20


class StagedFolder:
    """A context manager: entering takes the lock; leaving removes what was in flight and releases it."""

    def __init__(self, path: Path) -> None:
        """``path`` is made if missing.

        Raises:
            InputError: it holds files that staging did not put there.
        """
        make_folders(path)
        self.path = path
        foreign = sorted(set(os.listdir(path)) - _FOREIGN_ALLOWED)
        if foreign and not (path / STATE_FOLDER).is_dir():
            raise InputError(f"folder {path} holds {foreign[0]!r}, which staging did not put there: use an empty one")
        self._handles = contextlib.ExitStack()
        self._journal_lock = threading.Lock()

    def __enter__(self) -> StagedFolder:
        self._root = self._kept(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._state = self._kept(_folder(STATE_FOLDER, self._root, create=True))
        lock = os.open("lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._state)
        _lock(self._kept(lock), self.path)
        self._parts = self._kept(_folder("parts", self._state, create=True))
        self._empty_parts()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._empty_parts()
        finally:
            self._handles.close()

    def _kept(self, handle: int) -> int:
        self._handles.callback(os.close, handle)
        return handle

    def _empty_parts(self) -> None:
        for name in os.listdir(self._parts):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._parts)

    @contextlib.contextmanager
    def _parent(self, key: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        *folders, name = key.split("/")
        with contextlib.ExitStack() as stack:
            handle = self._root
            for folder in folders:
                handle = _folder(folder, handle, create=create)
                stack.callback(os.close, handle)
            yield handle, name

    def part(self, name: str) -> Path:
        """Where a file is written before it is published, reached through the open handle."""
        return Path(f"/proc/self/fd/{self._parts}/{name}")

    def part_size(self, name: str) -> int:
        """Bytes of a part so far; 0 when it is not there."""
        try:
            return os.stat(name, dir_fd=self._parts, follow_symlinks=False).st_size
        except OSError:
            return 0

    def publish(self, part: str, key: str) -> os.stat_result:
        """Give a finished part its name, replacing the file that had it; returns the new file's facts.

        Raises:
            StepError: ``data_corrupt`` when a folder of the key is a file or a symbolic link, or the file a folder.
            OSError: the disk refused.
        """
        try:
            with self._parent(key, create=True) as (handle, name):
                os.rename(part, name, src_dir_fd=self._parts, dst_dir_fd=handle)
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            text = f"cannot publish {key!r} below {self.path}: {error.strerror}; does something else write there?"
            raise StepError(Cause.DATA_CORRUPT, text, quote=str(error)) from error

    def stat(self, key: str) -> os.stat_result | None:
        """Facts of the regular file at ``key``; None if there is none, or anything else."""
        try:
            with self._parent(key) as (handle, name):
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def sha256(self, key: str) -> str:
        """SHA-256 of the file at ``key`` as it lies on disk; empty when it cannot be read."""
        running = hashlib.sha256()
        try:
            with self._parent(key) as (handle, name), open(os.open(name, _FILE, dir_fd=handle), "rb") as source:
                while chunk := source.read(_CHUNK):
                    running.update(chunk)
        except OSError:
            return ""
        return running.hexdigest()

    def remove_others(self, wanted: set[str]) -> None:
        """Remove every file that is not in ``wanted`` and every folder that is empty then; our state stays."""
        for place, folders, files, handle in os.fwalk(".", topdown=False, dir_fd=self._root):
            prefix = "" if place == "." else f"{place[2:]}/"
            if prefix.split("/")[0] in _FOREIGN_ALLOWED:
                continue
            for name in files:
                if prefix + name not in wanted:
                    os.unlink(name, dir_fd=handle)
            for name in folders:
                if prefix + name not in _FOREIGN_ALLOWED:
                    _drop(name, handle)

    def free(self) -> tuple[int, int | None]:
        """Bytes and files that still fit here; None where the file system does not count files."""
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None

    def records(self) -> dict[str, FileRecord]:
        """What was published here, from the marker and from the journal of an unfinished staging."""
        return read_records(self._read(_COMPLETE)) | read_records(self._read(_JOURNAL))

    def marker(self) -> Marker | None:
        """The marker, or None while the folder is not whole."""
        return read_marker(self._read(_COMPLETE))

    def _read(self, name: str) -> bytes:
        try:
            with open(os.open(name, _FILE, dir_fd=self._state), "rb") as source:
                return source.read()
        except FileNotFoundError:
            return b""

    def reopen(self, records: Iterable[FileRecord]) -> None:
        """Take the marker away and start a journal with what is known: from here on the folder is not whole."""
        self._write(_JOURNAL, b"".join(record.line() for record in records))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_COMPLETE, dir_fd=self._state)
        os.fsync(self._state)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._journal = self._kept(os.open(_JOURNAL, flags, dir_fd=self._state))

    def note(self, record: FileRecord) -> None:
        """Add a published file to the journal; callable from several threads."""
        with self._journal_lock:
            os.write(self._journal, record.line())

    def complete(self, marker: Marker, files: Iterable[FileRecord]) -> None:
        """Make the folders durable, then write the marker, then drop the journal."""
        files = list(files)
        for folder in _ancestors(record.key for record in files):
            with self._parent(f"{folder}/any" if folder else "any") as (handle, _):
                os.fsync(handle)
        self._write(_COMPLETE, marker.document(files))
        os.unlink(_JOURNAL, dir_fd=self._state)
        os.fsync(self._state)

    def _write(self, name: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o666, dir_fd=self._parts), "wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        os.rename(name, name, src_dir_fd=self._parts, dst_dir_fd=self._state)
        os.fsync(self._state)


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"argosy: waiting for another process that is staging into {path}", flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)


def _folder(name: str, parent: int, *, create: bool = False) -> int:
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _drop(name: str, parent: int) -> None:
    """Remove an empty folder, or a symbolic link to one; a folder that still holds wanted files stays."""
    try:
        os.rmdir(name, dir_fd=parent)
    except NotADirectoryError:
        os.unlink(name, dir_fd=parent)
    except OSError as error:
        if error.errno != ENOTEMPTY:
            raise


def _ancestors(keys: Iterable[str]) -> set[str]:
    """Every folder that has one of the keys below it, the root as ``""``."""
    found = {""}
    for key in keys:
        folder = key.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def read_staged(path: Path) -> tuple[Marker | None, dict[str, FileRecord]]:
    """Marker and files of a staged folder, without the lock: also from a volume that is mounted read-only."""
    try:
        raw = (path / STATE_FOLDER / _COMPLETE).read_bytes()
    except OSError:
        return None, {}
    return read_marker(raw), read_records(raw)
