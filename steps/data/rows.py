"""The rows of a staging: a file for each finished chunk of objects, and a journal for each that is not finished.

    records/<share>/00000         file records of a finished chunk, by key
    records/<share>/00001.open    journal: records as files were published, in any order, the last of a key rules

``<share>`` begins the digest of what was staged. A journal begins with the boot of the machine in which its rows
were written, as does a chunk's file: until a marker says that all is on the disk, a power loss may have taken back
bytes of files that rows speak of. Rows are written before a file gets its name, so that no published file is unknown.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from argosy.steps.data.records import key_of
from argosy.steps.data.state_files import FOLDER, open_folder, read_file, remove_file, write_file

CHUNK = 1 << 16
"""Objects of a chunk: what is held in memory at a time."""
ROWS_FOLDER = "records"
_OPEN = ".open"
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_DIGITS = 16


def boot() -> str:
    """Names this boot of this machine; unique to the call where the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.urandom(16).hex()


class Row(NamedTuple):
    """A record's line; ``unsure`` when a power loss may have come between it and now."""

    line: bytes
    unsure: bool


class Rows:
    """Writes the rows of one share; a context manager."""

    def __init__(self, state: int, share: str, now: str) -> None:
        """``state``: handle of the state folder; ``now``: see :func:`boot`.

        Raises:
            OSError: the disk refused.
        """
        records = open_folder(ROWS_FOLDER, state, create=True)
        try:
            self._folder = open_folder(share[:_NAME_DIGITS], records, create=True)
        finally:
            os.close(records)
        self._head = f"\t{now}\n".encode()
        self._journals: dict[int, int] = {}

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._journals.values():
            os.close(handle)
        self._journals.clear()
        os.close(self._folder)

    def note(self, chunk: int, lines: Sequence[bytes]) -> None:
        """Add rows to the chunk's journal."""
        handle = self._journals.get(chunk)
        if handle is None:
            handle = self._journals[chunk] = os.open(f"{chunk:05d}{_OPEN}", _APPEND, 0o666, dir_fd=self._folder)
            lines = (self._head, *lines)
        data = b"".join(lines)
        while data:
            data = data[os.write(handle, data) :]

    def begin(self, chunk: int, lines: Sequence[bytes]) -> None:
        """Start the chunk's journal anew with these rows, which rule over whatever was written before."""
        self._close(chunk)
        write_file(self._folder, f"{chunk:05d}{_OPEN}", (self._head, *lines))
        remove_file(self._folder, f"{chunk:05d}")

    def finish(self, chunk: int, lines: Iterable[bytes] | None = None) -> None:
        """Write the finished chunk's file: these rows, by key; None: those of its journal."""
        self._close(chunk)
        if lines is None:
            last = {key_of(row.line): row.line for row in _read(self._folder, f"{chunk:05d}{_OPEN}", "")}
            lines = sorted(last.values())
        write_file(self._folder, f"{chunk:05d}", (self._head, *lines))
        remove_file(self._folder, f"{chunk:05d}{_OPEN}")

    def _close(self, chunk: int) -> None:
        handle = self._journals.pop(chunk, None)
        if handle is not None:
            os.close(handle)


def known_rows(state: int, now: str, finished: str) -> Generator[Row, None, None]:
    """Rows of all stagings of the folder, by key; several of a key may come, of which its file decides.

    ``finished``: the share that had the marker, whose rows are sure; empty: none.
    """
    with contextlib.ExitStack() as stack:
        records = _opened(state, ROWS_FOLDER, stack)
        shares = [(_opened(records, name, stack), name) for name in _names(records)]
        trusted = finished[:_NAME_DIGITS]
        yield from heapq.merge(*(_of_share(folder, "" if name == trusted else now) for folder, name in shares))


def rows_of(state: int, share: str) -> Generator[Row, None, None]:
    """Rows of one finished share, by key."""
    with contextlib.ExitStack() as stack:
        folder = _opened(_opened(state, ROWS_FOLDER, stack), share[:_NAME_DIGITS], stack)
        for name in _names(folder):
            if name.isdigit():
                yield from _read(folder, name, "")


def keep_only(state: int, share: str) -> None:
    """Remove the rows of all other shares, and what a killed stager left of this one's journals.

    Raises:
        OSError: the disk refused.
    """
    with contextlib.ExitStack() as stack:
        records = _opened(state, ROWS_FOLDER, stack)
        for name in _names(records):
            folder = _opened(records, name, stack)
            ours = name == share[:_NAME_DIGITS]
            for each in _names(folder):
                if not (ours and each.isdigit()):
                    os.unlink(each, dir_fd=folder)
            if not ours:
                os.rmdir(name, dir_fd=records)


def _opened(parent: int, name: str, stack: contextlib.ExitStack) -> int:
    """A handle below another; -1 for what is no folder, and below that."""
    if parent < 0:
        return -1
    try:
        handle = os.open(name, FOLDER, dir_fd=parent)
    except OSError:
        return -1
    stack.callback(os.close, handle)
    return handle


def _names(folder: int) -> list[str]:
    return sorted(os.listdir(folder)) if folder >= 0 else []


def _of_share(folder: int, now: str) -> Iterator[Row]:
    # Chunks are runs of keys: one after the other they are in order, file and journal of each together.
    for chunk in sorted({name.partition(".")[0] for name in _names(folder)}):
        yield from sorted((*_read(folder, chunk, now), *_read(folder, chunk + _OPEN, now)))


def _read(folder: int, name: str, now: str) -> Iterator[Row]:
    """``now`` empty: whatever the boot, the rows are sure."""
    try:
        lines = read_file(folder, name).splitlines(keepends=True)
    except OSError:
        return
    unsure = bool(now)
    for line in lines:
        if line.startswith(b"\t"):
            unsure = now not in ("", line[1:-1].decode(errors="replace"))
        else:
            yield Row(line, unsure)
