"""A part's map: how far each of its pieces has come, kept by whoever fetches it, so that a kill costs next to nothing.

``<part>.map`` has a slot for each piece: start, length so far, and the CRC-64/NVME of these bytes. A slot is only a
hint until the bytes have been read again and give the same checksum: what was torn, or never written, is no mark.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from argosy.steps.transfer.crc import OWN, crc

SUFFIX = ".map"
_SLOT = struct.Struct("<QQQ")
_CHUNK = 4 << 20
_MOST_BYTES = 64 << 20
_FLAGS = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Mark(NamedTuple):
    """``length`` bytes from ``start`` of the object are in the part, and this is their crc64nvme."""

    start: int
    length: int
    crc: int


def open_map(parts: int, part: str) -> int:
    """Descriptor of a part's map, for writing.

    Raises:
        OSError: the disk refused.
    """
    return os.open(part + SUFFIX, os.O_WRONLY | _FLAGS, 0o666, dir_fd=parts)


def write_mark(marks: int, slot: int, mark: Mark) -> None:
    """Keep a mark in its slot.

    Raises:
        OSError: the disk refused.
    """
    os.pwrite(marks, _SLOT.pack(*mark), slot * _SLOT.size)


def write_map(parts: int, part: str, marks: Iterable[Mark]) -> None:
    """Replace a part's map: these marks, from slot 0 on; at every instant there is the old one or the new one.

    Raises:
        OSError: the disk refused.
    """
    fresh = f"{part}{SUFFIX}.new"
    handle = os.open(fresh, os.O_WRONLY | os.O_TRUNC | _FLAGS, 0o666, dir_fd=parts)
    with open(handle, "wb") as target:
        target.writelines(_SLOT.pack(*mark) for mark in marks)
    os.rename(fresh, part + SUFFIX, src_dir_fd=parts, dst_dir_fd=parts)


def verified(parts: int, part: str, object_size: int) -> list[Mark]:
    """The marks of a part whose bytes are there, by start; empty without part or map.

    Raises:
        OSError: the disk refused to read the part.
    """
    kept: list[Mark] = []
    with contextlib.ExitStack() as stack:
        try:
            marks = _read_map(parts, part)
            handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=parts)
        except OSError:
            return []
        stack.callback(os.close, handle)
        # The longest of a start first; never joined, so that a torn page costs one piece and no more.
        for mark in sorted(set(marks), key=lambda mark: (mark.start, -mark.length)):
            end = kept[-1].start + kept[-1].length if kept else 0
            if end <= mark.start <= object_size - mark.length and _crc(handle, mark) == mark.crc:
                kept.append(mark)
    return kept


def gaps(marks: Iterable[Mark], object_size: int, most: int) -> Iterator[tuple[int, int]]:
    """(start, length) of what the marks, by start, leave out, in pieces of at most ``most`` bytes."""
    at = 0
    for mark in (*marks, Mark(object_size, 0, 0)):
        while at < mark.start:
            length = min(most, mark.start - at)
            yield at, length
            at += length
        at = mark.start + mark.length


def _read_map(parts: int, part: str) -> list[Mark]:
    handle = os.open(part + SUFFIX, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=parts)
    with open(handle, "rb") as source:
        raw = source.read(_MOST_BYTES)
    raw = raw[: len(raw) // _SLOT.size * _SLOT.size]
    return [mark for row in _SLOT.iter_unpack(raw) if (mark := Mark(*row)).length]


def _crc(handle: int, mark: Mark) -> int | None:
    running, seen = 0, 0
    while seen < mark.length:
        chunk = os.pread(handle, min(_CHUNK, mark.length - seen), mark.start + seen)
        if not chunk:
            return None
        running = crc(OWN, chunk, running)
        seen += len(chunk)
    return running
