"""The folder of a cache and what it keeps for itself.

    ROOT/DIGEST[-SHARE]/            an entry: a staged folder, whole once its marker is there
    ROOT/.argosy-cache/lock         held while room is made
    ROOT/.argosy-cache/leases/      who fills, uses or evicts what (lease.py)
    ROOT/.argosy-cache/booked/      which run has staged an entry and not begun to use it (booking.py)
    ROOT/.argosy-cache/used/ENTRY   locked by those who use the entry, also through a read-only mount; its mtime is the
                                    latest use, its content what the entry is
    ROOT/.argosy-cache/trash/       entries that are being removed; whoever makes room next finishes that

Everything else in ROOT is somebody's and is never touched.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from types import TracebackType
from typing import Self

from argosy.steps.data.cache.booking import Booking, book, booked, redeem
from argosy.steps.data.cache.entry import Entry, Label, disk_use, is_entry, read_label, touch, volume_time
from argosy.steps.data.cache.lease import Kind, Lease, Seen, living
from argosy.steps.data.cache.lock import try_lock, unlock
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.store.files import make_folders

STATE = ".argosy-cache"
_FOLDERS = ("leases", "booked", "used", "trash")
_NOT_OURS_TO_WRITE = (EROFS, EACCES, EPERM)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class CacheRoot:
    """A context manager; what it holds open is closed at the end."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """``path`` is made if missing, unless nothing may be written.

        Raises:
            OSError: the volume fails.
        """
        self.path = path
        self.leases, self.booked, self.used, self.trash = (path / STATE / name for name in _FOLDERS)
        self.read_only_because = "read_only is set" if read_only else ""
        self._lock = -1
        if not read_only:
            self._open()

    def _open(self) -> None:
        try:
            for name in _FOLDERS:
                make_folders(self.path / STATE / name)
            self._lock = os.open(self.path / STATE / "lock", _FLAGS, 0o666)
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_WRITE:
                raise
            self.read_only_because = error.strerror or str(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._lock >= 0:
            os.close(self._lock)

    def now(self) -> float:
        """The volume's own time."""
        return volume_time(self._lock)

    @contextlib.contextmanager
    def locked(self, waiting: Waiting) -> Iterator[None]:
        """One at a time makes room."""
        while not try_lock(self._lock):
            waiting.pause("room", f"waiting for another process that makes room in {self.path}")
        try:
            yield
        finally:
            unlock(self._lock)

    def take(self, entry: str, kind: Kind, who: str) -> Lease:
        """A lease of ours on ``entry``."""
        return Lease(self.leases, entry, kind, who)

    def living(self, entry: str = "", besides: Lease | None = None) -> list[Seen]:
        """Live leases (of one entry) that others hold."""
        mine = "" if besides is None else besides.token
        return [seen for seen in living(self.leases, self.now(), entry) if seen.token != mine]

    def book(self, entry: str, run: str, who: str, seconds: float) -> None:
        """Keep ``entry`` for ``run``, which will come for it; see :mod:`argosy.steps.data.cache.booking`."""
        book(self.booked, entry, run, who, seconds)

    def redeem(self, entry: str, run: str) -> None:
        """``run`` holds the entry now."""
        redeem(self.booked, entry, run)

    def bookings(self, entry: str = "") -> list[Booking]:
        """Bookings (of one entry) that count."""
        return booked(self.booked, self.now(), entry)

    @contextlib.contextmanager
    def held(self, entry: str, waiting: Waiting) -> Iterator[None]:
        """Nobody of this kernel evicts ``entry`` meanwhile; works through a read-only mount too."""
        handle = self._hold(entry, waiting)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)

    def _hold(self, entry: str, waiting: Waiting) -> int | None:
        path, flags = self.used / entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            try:
                handle = os.open(path, flags if self.read_only_because else _FLAGS, 0o666)
            except OSError:
                if self.read_only_because:
                    return None
                raise
            try:
                free = try_lock(handle, shared=True)
            except OSError:
                # A read-only volume without locks: nobody who could evict there would see ours.
                if self.read_only_because:
                    return handle
                raise
            # An evictor removes the file that it has locked: then another one has its name, or none.
            if free and os.fstat(handle).st_nlink:
                return handle
            os.close(handle)
            waiting.pause(f"evict {entry}", f"waiting for the eviction of {entry[:12]} from {self.path}", after=1.0)

    def label(self, entry: str, label: Label) -> None:
        """Remember what an entry is."""
        with contextlib.suppress(OSError):
            handle = os.open(self.used / entry, _FLAGS, 0o666)
            try:
                os.ftruncate(handle, 0)
                os.pwrite(handle, label.line(), 0)
            finally:
                os.close(handle)

    def touch(self, entry: str) -> None:
        """It was used just now."""
        touch(self.used / entry)

    def entries(self) -> list[Entry]:
        """What is here or was given its room, the least recently used first."""
        leases, bookings = self.living(), self.bookings()
        names = {name for name in os.listdir(self.path) if is_entry(self.path, name)}
        names |= {seen.entry for seen in leases if seen.holder.planned}
        found = [self._entry(name, leases, bookings) for name in names]
        return sorted(found, key=lambda entry: entry.used)

    def _entry(self, name: str, leases: list[Seen], bookings: list[Booking]) -> Entry:
        label = read_label(self.used / name) or Label("", *disk_use(self.path / name))
        used, locked = 0.0, False
        with contextlib.suppress(OSError):
            handle = os.open(self.used / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                used, locked = os.fstat(handle).st_mtime, not try_lock(handle)
            finally:
                os.close(handle)
        held = tuple(seen for seen in leases if seen.entry == name)
        return Entry(name, label, used, held, locked, tuple(one for one in bookings if one.entry == name))
