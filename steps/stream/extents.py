"""Which bytes samples need, and as which requests they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REQUEST_BYTES = 8 << 20
"""Most bytes of one request: large reads go in parallel, and one lost connection costs no more."""


@dataclass(frozen=True, slots=True)
class Extent:
    """``length`` bytes from ``start`` of the catalogue's object ``object``."""

    object: int
    start: int
    length: int

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + self.length


def merged(extents: Iterable[Extent], sizes: Sequence[int], block: int) -> list[Extent]:
    """What has to be read for ``extents``: rounded out to whole blocks, touching and overlapping ones made one.

    ``block`` 1: nothing is rounded. Sorted by object and start; empty ones are left out.
    """
    rounded = sorted(
        (one.object, one.start // block * block, min(-(-one.end // block) * block, sizes[one.object]))
        for one in extents
        if one.length
    )
    runs: list[Extent] = []
    for number, start, end in rounded:
        if runs and runs[-1].object == number and start <= runs[-1].end:
            start = runs[-1].start
            end = max(end, runs.pop().end)
        runs.append(Extent(number, start, end - start))
    return runs


def pieces(run: Extent, block: int) -> list[Extent]:
    """``run``, which begins at a block's start, cut into requests of whole blocks."""
    most = max(block, REQUEST_BYTES // block * block)
    return [Extent(run.object, start, min(most, run.end - start)) for start in range(run.start, run.end, most)]
