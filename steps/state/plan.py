"""Which rank writes which piece of a state: a pure function of names, shapes, placements and world size."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

PIECE_BYTES = 64 << 20
"""Larger blocks are cut along their first dimension, so that the shares of the ranks are even."""
FILE_BYTES = 256 << 20
"""A rank's share goes into files of about this size: a reader hashes and loads several at once."""
BUNDLE_BYTES = 1 << 20
"""Small pieces that several ranks hold go to one of them by bundles of at most this size, not one by one: each of them
costs every rank that loads it a request, for four bytes of an optimizer's step too."""


@dataclass(frozen=True)
class Held:
    """A block of a tensor that some ranks hold."""

    offset: tuple[int, ...]
    """Where it begins in the whole tensor, in elements per dimension."""
    shape: tuple[int, ...]
    source: tuple[int, ...]
    """Where it begins in what each of ``ranks`` holds."""
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class TensorFacts:
    """A tensor of the state; ``shape`` is that of the whole, ``itemsize`` is in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    itemsize: int
    held: tuple[Held, ...] | None = None
    """Blocks that cover it exactly once; None: every rank holds it whole."""
    placement: str = ""
    """The words of ``held``, for comparing ranks."""


@dataclass(frozen=True)
class Piece:
    """What is written at once: a block of a tensor, ``offset`` and ``shape`` per dimension, in elements."""

    tensor: str
    offset: tuple[int, ...]
    shape: tuple[int, ...]
    size: int
    """Bytes."""
    source: tuple[int, ...]
    """Where it begins in what its writer holds."""

    @property
    def name(self) -> str:
        """Unique in the checkpoint: the tensor's name and where the block begins."""
        return f"{self.tensor}@{','.join(map(str, self.offset))}"


def fingerprint(tensors: Sequence[TensorFacts]) -> str:
    """SHA-256 of names, types, shapes and placements: equal on all ranks, or the plan would leave holes."""
    facts = [[fact.name, fact.dtype, list(fact.shape), fact.placement] for fact in tensors]
    return hashlib.sha256(json.dumps(sorted(facts)).encode()).hexdigest()


def pieces_of(tensor: TensorFacts, block: Held) -> list[Piece]:
    """Slices of the block along its first dimension longer than 1, each at most :data:`PIECE_BYTES` if it can be."""
    size = prod(block.shape) * tensor.itemsize
    axis = next((axis for axis, length in enumerate(block.shape) if length > 1), None)
    if axis is None or size <= PIECE_BYTES:
        return [Piece(tensor.name, block.offset, block.shape, size, block.source)]
    row = size // block.shape[axis]
    rows = max(1, PIECE_BYTES // row)
    pieces = []
    for start in range(0, block.shape[axis], rows):
        count = min(rows, block.shape[axis] - start)
        pieces.append(
            Piece(
                tensor.name,
                _moved(block.offset, axis, start),
                (*block.shape[:axis], count, *block.shape[axis + 1 :]),
                count * row,
                _moved(block.source, axis, start),
            )
        )
    return pieces


def plan(tensors: Sequence[TensorFacts], world_size: int) -> list[list[list[Piece]]]:
    """``plan[rank]`` is that rank's files, each a list of pieces.

    What fewest ranks hold is dealt first; within a group of holders the largest pieces go first to the rank with the
    least so far. So the largest share of a replicated state exceeds the mean by at most one piece.

    No file mixes what different ranks hold. A reader must hash a file as a whole, so a small tensor that all load,
    among one rank's shards, would have all of them read these shards.
    """
    everyone = tuple(range(world_size))
    by_holders: dict[tuple[int, ...], list[Piece]] = {}
    for tensor in sorted(tensors, key=lambda fact: fact.name):
        origin = (0,) * len(tensor.shape)
        for block in [Held(origin, tensor.shape, origin, everyone)] if tensor.held is None else tensor.held:
            by_holders.setdefault(block.ranks, []).extend(pieces_of(tensor, block))
    largest = max((piece.size for pieces in by_holders.values() for piece in pieces), default=0)
    files: list[list[list[Piece]]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for holders in sorted(by_holders, key=lambda ranks: (len(ranks), ranks)):
        bundles = _bundles(by_holders[holders], min(BUNDLE_BYTES, largest))
        for rank, share in _dealt(bundles, holders, loads).items():
            files[rank] += files_of(share)
    return files


def _bundles(pieces: list[Piece], limit: int) -> list[list[Piece]]:
    """Pieces that go to one rank together: at most ``limit`` bytes, or one piece. Largest first."""
    return _cut(sorted(pieces, key=lambda piece: (-piece.size, piece.name)), limit)


def _cut(pieces: Iterable[Piece], limit: int) -> list[list[Piece]]:
    groups: list[list[Piece]] = []
    filled = 0
    for piece in pieces:
        if not groups or filled + piece.size > limit:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += piece.size
    return groups


def _dealt(bundles: list[list[Piece]], holders: tuple[int, ...], loads: list[int]) -> dict[int, list[Piece]]:
    """Rank -> its pieces; ``loads``, bytes per rank, goes up by them."""
    shares: dict[int, list[Piece]] = {rank: [] for rank in holders}
    waiting = [(loads[rank], rank) for rank in holders]
    heapq.heapify(waiting)
    for bundle in sorted(bundles, key=lambda bundle: -sum(piece.size for piece in bundle)):
        load, rank = heapq.heappop(waiting)
        shares[rank] += bundle
        loads[rank] = load + sum(piece.size for piece in bundle)
        heapq.heappush(waiting, (loads[rank], rank))
    return shares


def files_of(share: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces of one rank that the same ranks hold, grouped into files of about :data:`FILE_BYTES`."""
    return _cut(sorted(share, key=lambda piece: piece.name), FILE_BYTES)


def _moved(where: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return (*where[:axis], where[axis] + by, *where[axis + 1 :])


def shard_path(rank: int, number: int) -> str:
    """Path in the checkpoint of a rank's file."""
    return f"tensors/rank-{rank:05d}-{number:03d}.safetensors"
