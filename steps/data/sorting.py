"""Lines in order, more of them than fit into memory."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from argosy.steps.data.spool import Spool

LINES = 1 << 17
"""Lines that are sorted in memory at a time."""
_BLOCK = 1 << 11

Run = list[tuple[int, int]]


def sorted_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """``lines`` (none holds a line feed) by their bytes; sorted stretches of any length are merged from disk.

    What comes in order costs no merge: a stretch that begins where the last one ended belongs to it.
    """
    spool, last = Spool(), b""
    runs: list[Run] = []
    buffer: list[bytes] = []
    for line in lines:
        buffer.append(line)
        if len(buffer) == LINES:
            buffer.sort()
            if not runs or buffer[0] < last:
                runs.append([])
            last = buffer[-1]
            runs[-1].extend(_spill(buffer, spool))
            buffer = []
    buffer.sort()
    return heapq.merge(*(_lines(run, spool) for run in runs), buffer) if runs else iter(buffer)


def _spill(lines: list[bytes], spool: Spool) -> Iterator[tuple[int, int]]:
    for first in range(0, len(lines), _BLOCK):
        text = b"\n".join([*lines[first : first + _BLOCK], b""])
        yield spool.append(text), len(text)


def _lines(run: Run, spool: Spool) -> Iterator[bytes]:
    for start, length in run:
        yield from spool.read(start, length).split(b"\n")[:-1]
