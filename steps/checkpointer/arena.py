"""The buffer that a rank's snapshot is copied into: anonymous shared memory, laid out as the rank's files are.

``memfd_create`` is not limited by the size of ``/dev/shm`` (64 MB in a pod) and leaves nothing behind: the memory is
gone with the last process that has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
from collections.abc import Callable
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.evidence.memory import available_bytes

PAGE = 4096
BOARD = PAGE
"""Bytes at the beginning that hold no file: there the script notes the step it is at, without a system call."""
_POPULATE_READ, _POPULATE_WRITE = 22, 23
_RESERVE = 256 << 20
"""Left free for everybody else when an arena is made."""
_libc = ctypes.CDLL(None, use_errno=True)


class Arena:
    """Shared memory of one rank; the script writes, the writer reads. Grows, never shrinks."""

    def __init__(self, handle: int | None = None) -> None:
        """``handle``: the memfd that was inherited; without it a new one is made."""
        self.handle = os.memfd_create("argosy-arena", os.MFD_CLOEXEC) if handle is None else handle
        self.map: mmap.mmap | None = None
        self.address = 0
        self.size = 0
        self._pin: ctypes.c_char | None = None
        self.unpin: Callable[[], Any] | None = None
        """Set where a device knows this map (:mod:`argosy.steps.checkpointer.pinning`); called before the map goes."""
        if handle is None:
            os.ftruncate(self.handle, BOARD)
        self._map(max(BOARD, os.fstat(self.handle).st_size))

    def _map(self, size: int) -> None:
        self._forget()
        # The old map is not closed: views of it may live a little longer, and it costs no memory of its own.
        self.map = mmap.mmap(self.handle, size)
        self._pin = ctypes.c_char.from_buffer(self.map)
        self.address = ctypes.addressof(self._pin)
        self.size = size

    def _forget(self) -> None:
        unpin, self.unpin = self.unpin, None
        if unpin is not None:
            unpin()

    def grow(self, size: int) -> None:
        """Have ``size`` bytes, every page in place (the script's side).

        Raises:
            StepError: ``host_oom``: there is not so much memory; said before the kernel kills somebody for it.
        """
        if size > self.size:
            need, free = size - self.size, available_bytes()
            if need + _RESERVE > free:
                raise StepError(
                    Cause.HOST_OOM,
                    f"the snapshot of this rank needs {need / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free",
                )
            try:
                os.ftruncate(self.handle, size)
                self._map(size)
            except OSError as error:  # RLIMIT_AS (ulimit -v)
                text = f"no room for a snapshot of {size / 1e9:.1f} GB: {error}"
                raise StepError(Cause.HOST_OOM, text) from error
        self._populate(_POPULATE_WRITE)

    def follow(self) -> None:
        """Map what the other side made (the writer's side)."""
        size = os.fstat(self.handle).st_size
        if size > self.size:
            self._map(size)

    def fault_in(self) -> None:
        """Have every page in place for reading; takes its time."""
        self._populate(_POPULATE_READ)

    def _populate(self, advice: int) -> None:
        # 150,000 page faults in the middle of a copy cost as much as the copy. ctypes releases the GIL meanwhile.
        if _libc.madvise(ctypes.c_void_p(self.address), ctypes.c_size_t(self.size), advice) != 0:
            return  # a kernel before 5.14: the first save pays for the faults

    def view(self, start: int, size: int) -> memoryview:
        """Bytes ``[start, start + size)``, which must be there: a slice of a map would quietly be shorter."""
        assert self.map is not None
        assert start + size <= self.size
        return memoryview(self.map)[start : start + size]

    def note_step(self, step: int) -> None:
        """Leave the script's step for the writer."""
        assert self.map is not None
        struct.pack_into("<q", self.map, 0, step)

    def noted_step(self) -> int:
        """The script's step; 0: none yet."""
        assert self.map is not None
        return int(struct.unpack_from("<q", self.map, 0)[0])

    def close(self) -> None:
        """Give the memory back once nobody looks at it."""
        self._forget()
        self._pin = None
        with contextlib.suppress(BufferError, AttributeError):
            self.map.close()  # type: ignore[union-attr]
        self.map = None
        with contextlib.suppress(OSError):
            os.close(self.handle)
