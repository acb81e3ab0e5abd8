"""What Linux offers for files and Python's ``os`` does not: allocation without the C library's fallback, syncfs.

``posix_fallocate`` of the C library writes into every block where the file system cannot allocate: minutes for a
large file. The system call says so instead.
"""

from __future__ import annotations

import ctypes
import functools
import os
from errno import EDQUOT, EFBIG, EINTR, ENOSPC

_KEEP_SIZE = 1
_TMPFS = 0x01021994


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def allocate(handle: int, size: int) -> None:
    """Give a file its size and, where the file system can, its blocks; bytes that are there stay.

    Raises:
        OSError: no room, over a quota, or larger than a file may be.
    """
    os.ftruncate(handle, size)
    code = _fallocate(handle, 0, size)
    if code in (ENOSPC, EDQUOT, EFBIG):
        raise OSError(code, os.strerror(code))


def reserve(folder: int, size: int) -> None:
    """Find out whether ``size`` bytes may be written below a folder: quotas show only when blocks are taken.

    Raises:
        OSError: no room, or over a quota.
    """
    if size <= 0 or _in_memory(folder):
        return
    name = "reserved"
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        os.unlink(name, dir_fd=folder)
        code = _fallocate(handle, _KEEP_SIZE, size)
    finally:
        os.close(handle)
    if code in (ENOSPC, EDQUOT):
        raise OSError(code, os.strerror(code))


def sync_file_system(handle: int) -> None:
    """Everything that was written to the file system of ``handle`` reaches the disk.

    Raises:
        OSError: something did not.
    """
    try:
        syncfs = _libc().syncfs
    except (AttributeError, OSError):
        os.sync()
        return
    if syncfs(handle):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _fallocate(handle: int, mode: int, size: int) -> int:
    try:
        call = _libc().fallocate
    except (AttributeError, OSError):
        return 0
    while call(handle, mode, ctypes.c_longlong(0), ctypes.c_longlong(size)):
        code = ctypes.get_errno()
        if code != EINTR:
            return code
    return 0


def _in_memory(handle: int) -> bool:
    """tmpfs: its free space is the truth, and reserving it would take the memory."""
    try:
        facts = (ctypes.c_long * 64)()
        return _libc().fstatfs(handle, ctypes.byref(facts)) == 0 and facts[0] == _TMPFS
    except (AttributeError, OSError):
        return True
