"""A staged folder on disk: who works on it, and where its parts lie.

FOLDER/<key>                           the data
FOLDER/.argosy-stage/lock              one stager at a time (the kernel releases it when the holder dies)
FOLDER/.argosy-stage/parts/            files in flight (parts.py)
FOLDER/.argosy-stage/records/          what was published, file by file (rows.py): a killed stager resumes from it
FOLDER/.argosy-stage/complete.json     the marker, written last (marker.py)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.steps.data.keys import STATE_FOLDER
from argosy.steps.data.marker import Marker, read_marker
from argosy.steps.data.records import FileRecord, record_of
from argosy.steps.data.rows import rows_of
from argosy.steps.data.state_files import open_folder
from argosy.steps.data.strays import NOT_OURS
from argosy.steps.store.files import make_folders


class StagedFolder:
    """A context manager: entering takes the lock, leaving releases it. ``root``, ``state``, ``parts``: handles."""

    def __init__(self, path: Path) -> None:
        """``path`` is made if missing.

        Raises:
            InputError: it holds files that staging did not put there.
        """
        make_folders(path)
        self.path = path
        self._handles = contextlib.ExitStack()
        refuse_foreign(path)

    def __enter__(self) -> StagedFolder:
        try:
            self.root = self._kept(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self.state = self._kept(open_folder(STATE_FOLDER, self.root, create=True))
            flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            _lock(self._kept(os.open("lock", flags, 0o666, dir_fd=self.state)), self.path)
            self.parts = self._kept(open_folder("parts", self.state, create=True))
            with contextlib.suppress(OSError):
                # The workers of a stager that was killed hold this one until they have ended, too: they write there.
                fcntl.flock(self.parts, fcntl.LOCK_EX)
        except BaseException:
            self._handles.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._handles.close()

    def _kept(self, handle: int) -> int:
        self._handles.callback(os.close, handle)
        return handle

    def free(self) -> tuple[int, int | None]:
        """Bytes and files that still fit here; None where the file system does not count files."""
        found = os.statvfs(self.root)
        return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None


def refuse_foreign(path: Path) -> None:
    """Raise InputError when the folder holds files that staging did not put there."""
    if not (path / STATE_FOLDER).is_dir():
        found = sorted(set(os.listdir(path)) - set(NOT_OURS))
        if found:
            raise foreign(path, found[0])


def foreign(path: Path, name: str) -> InputError:
    """What is said of a file that is not staging's."""
    return InputError(f"folder {path} holds {name!r}, which staging did not put there: move it, or use an empty folder")


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"argosy: waiting for another process that is staging into {path}", flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)


def marker_of(path: Path) -> Marker | None:
    """The marker of a staged folder, without the lock: also from a volume that is mounted read-only."""
    with open_state(path) as state:
        return None if state is None else read_marker(state)


def records_of(path: Path) -> Iterator[FileRecord]:
    """Files of a finished staged folder by key, without the lock."""
    with open_state(path) as state:
        marker = None if state is None else read_marker(state)
        if state is not None and marker is not None:
            records = (record_of(row.line) for row in rows_of(state, marker.share))
            yield from (record for record in records if record is not None)


@contextlib.contextmanager
def open_state(path: Path) -> Iterator[int | None]:
    """Handle of the state folder, None when ``path`` is no staged folder; without the lock."""
    try:
        handle = os.open(path / STATE_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)
