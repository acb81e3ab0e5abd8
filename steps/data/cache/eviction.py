"""Taking an entry out of a cache: renamed away under its lock, then removed; a kill in between loses nothing.

An evictor announces itself by a lease and looks for others' afterwards; a user announces itself and looks for an
evictor afterwards. Whatever the order, one of them sees the other, and the evictor withdraws. So this also holds
between nodes whose locks do not reach each other: creating a file and listing its folder is enough.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from argosy.steps.data.cache.entry import is_entry
from argosy.steps.data.cache.lock import try_lock
from argosy.steps.data.cache.root import CacheRoot


def evict(root: CacheRoot, entry: str, who: str) -> bool:
    """Rename ``entry`` into the trash; False when somebody holds or has booked it, or it cannot be moved.

    Raises:
        OSError: the volume fails.
    """
    try:
        handle = os.open(root.used / entry, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError:
        return False
    try:
        if not try_lock(handle):
            return False
        with root.take(entry, "evict", who) as lease:
            # In this order: who stages books the entry before its lease goes.
            if root.living(entry, besides=lease) or root.bookings(entry) or not is_entry(root.path, entry):
                return False
            try:
                os.rename(root.path / entry, root.trash / f"{entry}.{lease.token}")
            except OSError:  # a mount point, or another user's folder
                return False
            with contextlib.suppress(OSError):
                os.unlink(root.used / entry)
            return True
    finally:
        os.close(handle)


def sweep(root: CacheRoot) -> None:
    """Remove what lies in the trash, also what a killed evictor left there; what resists stays."""
    for name in os.listdir(root.trash):
        with contextlib.suppress(OSError):
            _remove(root.trash / name)


def _remove(path: Path) -> None:
    for _, folders, files, handle in os.fwalk(path, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=handle)
        for name in folders:
            with contextlib.suppress(OSError):
                _drop(name, handle)
    os.rmdir(path)


def _drop(name: str, parent: int) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except NotADirectoryError:  # a symbolic link to a folder
        os.unlink(name, dir_fd=parent)
