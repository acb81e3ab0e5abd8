"""Which indices of a tensor each coordinate of a mesh holds: torch's rules of sharding, in integers.

``Runs`` are stretches ``(start, length)`` of one dimension in the order in which they lie in a rank's memory. A rank
may hold several: FSDP over tensor parallelism (``_StridedShard``) deals stretches out like cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sharding:
    """One dimension of a mesh: ``dimension`` of the tensor is dealt out over ``mesh_size``; None: replicated."""

    mesh_size: int
    dimension: int | None = None
    split_factor: int = 1
    """How many shards of dimensions further right this one is dealt below; 1: plain sharding."""


def runs_of(shape: Sequence[int], shardings: Sequence[Sharding]) -> list[tuple[Runs, ...]]:
    """For each coordinate of the mesh, last dimension fastest: the runs of every dimension of the tensor."""
    states = [_whole(shape)]
    for sharding in shardings:
        states = [_dealt(state, sharding, column) for state in states for column in range(sharding.mesh_size)]
    return states


def runs_at(shape: Sequence[int], shardings: Sequence[Sharding], coordinate: Sequence[int]) -> tuple[Runs, ...]:
    """The runs of one coordinate."""
    state = _whole(shape)
    for sharding, column in zip(shardings, coordinate, strict=True):
        state = _dealt(state, sharding, column)
    return state


def blocks_of(runs: tuple[Runs, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """``(offset in the whole, shape, offset in the rank's memory)`` of each block; none where a dimension is empty."""
    placed = []
    for stretches in runs:
        at, found = 0, []
        for start, length in stretches:
            found.append((start, length, at))
            at += length
        placed.append(found)
    for block in product(*placed):
        yield tuple(b[0] for b in block), tuple(b[1] for b in block), tuple(b[2] for b in block)


def local_shape(runs: tuple[Runs, ...]) -> tuple[int, ...]:
    """The shape of what the rank holds."""
    return tuple(sum(length for _, length in stretches) for stretches in runs)


def _whole(shape: Sequence[int]) -> tuple[Runs, ...]:
    return tuple(((0, length),) if length else () for length in shape)


def _dealt(state: tuple[Runs, ...], sharding: Sharding, column: int) -> tuple[Runs, ...]:
    axis = sharding.dimension
    if axis is None:
        return state
    parts = [_chunk(state[axis], sharding.split_factor, part) for part in range(sharding.split_factor)]
    shard = _joined([_chunk(part, sharding.mesh_size, column) for part in parts])
    return (*state[:axis], shard, *state[axis + 1 :])


def _chunk(runs: Runs, number: int, index: int) -> Runs:
    """Chunk ``index`` of ``number``, cut as torch.chunk cuts; empty where that gives fewer."""
    total = sum(length for _, length in runs)
    step = -(-total // number)
    return _between(runs, min(index * step, total), min((index + 1) * step, total))


def _between(runs: Runs, first: int, last: int) -> Runs:
    found, at = [], 0
    for start, length in runs:
        low, high = max(first - at, 0), min(last - at, length)
        if low < high:
            found.append((start + low, high - low))
        at += length
    return tuple(found)


def _joined(parts: Sequence[Runs]) -> Runs:
    joined: list[tuple[int, int]] = []
    for start, length in (run for runs in parts for run in runs):
        if joined and sum(joined[-1]) == start:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((start, length))
    return tuple(joined)
