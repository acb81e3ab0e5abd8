"""A process that SIGKILL does not end, like one that sleeps in a driver: a tracer holds it where it would end."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MAY_BE_TRACED: Final = "import ctypes; ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)"
"""Python for whoever is to be held: anybody may trace it."""
PTRACE_SEIZE: Final = 0x4206
PTRACE_O_TRACEEXIT: Final = 0x40
PTRACE_DETACH: Final = 17


@contextmanager
def held_at_its_end(pid: int) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACEEXIT) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, pid, None, None)
