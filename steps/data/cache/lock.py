"""Locks that the kernel gives back when their holder dies, however it dies."""

from __future__ import annotations

import fcntl


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file (``flock``) without waiting; False when somebody holds it.

    Raises:
        OSError: the file system has no such locks (Lustre without ``-o flock``, say).
    """
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(handle: int) -> None:
    """Lock an open file, and wait for who holds it; raises as :func:`try_lock`."""
    fcntl.flock(handle, fcntl.LOCK_EX)


def unlock(handle: int) -> None:
    """Give the lock back and keep the file open."""
    fcntl.flock(handle, fcntl.LOCK_UN)
