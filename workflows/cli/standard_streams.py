"""Standard input, output and error of the command line: closed ones, and pipes whose reader goes away."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from typing import IO, Any, Final, cast

ENDLESS: Final = frozenset(("logs", "top"))
"""Verbs that only show, and may do so until they are stopped: without a reader they end."""


class NobodyReads(Exception):
    """The reader of a verb that only shows is gone (``| head``); no OSError, of which click makes exit code 1."""


class _Pipe(io.FileIO):
    """Written to a reader that is gone, it goes nowhere: what a verb does, and its exit code, do not hang on it.

    ``last``: of what cannot be written there nobody can be told, whatever the reason.
    """

    def __init__(self, handle: int, *, ends: bool, last: bool) -> None:
        super().__init__(handle, "wb", closefd=False)
        self._ends, self._last = ends, last

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not (self._last or isinstance(error, BrokenPipeError)):
                raise
            discard(self.fileno())
            if self._ends:
                raise NobodyReads from None
            return memoryview(data).nbytes


def prepare(verb: str) -> None:
    """Make the standard streams fit to be written to, whatever becomes of their readers."""
    _open_closed()
    sys.stdout = _outliving(sys.stdout, ends=verb in ENDLESS)
    sys.stderr = _outliving(sys.stderr, last=True)


def discard(handle: int) -> None:
    """What is still written there goes nowhere, Python's own last flush too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)


def _open_closed() -> None:
    """With a stream closed (``>&-``), the next file we open would be taken for it, here and in every pod.

    One that was opened the wrong way round (``1</dev/null``) is as good as closed.
    """
    for handle, name, mode in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_WRONLY), (2, "stderr", os.O_WRONLY)):
        if not _serves(handle, mode):
            nowhere = os.open(os.devnull, mode)  # the lowest free number: of a closed one this very handle
            if nowhere != handle:
                os.dup2(nowhere, handle)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(handle, "w" if handle else "r", closefd=False))


def _serves(handle: int, mode: int) -> bool:
    try:
        return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE in (mode, os.O_RDWR)
    except OSError:
        return False


def _outliving(given: IO[str], *, ends: bool = False, last: bool = False) -> io.TextIOWrapper:
    stream = cast("io.TextIOWrapper", given)
    stream.flush()
    buffer = io.BufferedWriter(_Pipe(stream.fileno(), ends=ends, last=last))
    by_line = stream.line_buffering or stream.write_through  # the latter: PYTHONUNBUFFERED
    # Latin-1 and ASCII lack letters that scripts print: one of them must not end what follows a run.
    errors = "backslashreplace" if stream.errors == "strict" else stream.errors
    return io.TextIOWrapper(buffer, stream.encoding, errors, line_buffering=by_line)
