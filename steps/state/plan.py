"""Which rank writes which tensor of a replicated state: a pure function of names, shapes and world size."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

PIECE_BYTES = 64 << 20
"""Larger tensors are cut along their first dimension, so that the shares of the ranks are even."""
FILE_BYTES = 256 << 20
"""A rank's share goes into files of about this size: a reader hashes and loads several at once."""


@dataclass(frozen=True)
class TensorFacts:
    """A tensor of the state; ``itemsize`` in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    itemsize: int

    @property
    def size(self) -> int:
        """Bytes."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True)
class Piece:
    """A block of a tensor: ``offset`` and ``shape`` per dimension, in elements."""

    tensor: str
    offset: tuple[int, ...]
    shape: tuple[int, ...]
    size: int

    @property
    def name(self) -> str:
        """Unique in the checkpoint: the tensor's name and where the block begins."""
        return f"{self.tensor}@{','.join(map(str, self.offset))}"


def facts_of(tensors: Mapping[str, Any]) -> list[TensorFacts]:
    """What the plan needs of each tensor."""
    return [
        TensorFacts(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.element_size())
        for name, tensor in tensors.items()
    ]


def piece_of(tensor: Any, piece: Piece) -> Any:
    """The view of ``tensor`` that ``piece`` names."""
    for dimension, (start, length) in enumerate(zip(piece.offset, piece.shape, strict=True)):
        tensor = tensor.narrow(dimension, start, length)
    return tensor


def fingerprint(tensors: Sequence[TensorFacts]) -> str:
    """SHA-256 of names, types and shapes: equal on all ranks, or the plan would leave holes."""
    facts = [[fact.name, fact.dtype, list(fact.shape)] for fact in tensors]
    return hashlib.sha256(json.dumps(sorted(facts)).encode()).hexdigest()


def pieces_of(tensor: TensorFacts) -> list[Piece]:
    """Blocks of whole rows, each at most :data:`PIECE_BYTES` (one row where a row is larger)."""
    if not tensor.shape or tensor.size <= PIECE_BYTES:
        return [Piece(tensor.name, (0,) * len(tensor.shape), tensor.shape, tensor.size)]
    row = tensor.size // tensor.shape[0]
    rows = max(1, PIECE_BYTES // row)
    rest = (0,) * (len(tensor.shape) - 1)
    blocks = []
    for start in range(0, tensor.shape[0], rows):
        count = min(rows, tensor.shape[0] - start)
        blocks.append(Piece(tensor.name, (start, *rest), (count, *tensor.shape[1:]), count * row))
    return blocks


def plan(tensors: Sequence[TensorFacts], world_size: int) -> list[list[list[Piece]]]:
    """``plan[rank]`` is that rank's files, each a list of pieces.

    The largest pieces go first to the rank with the least so far, so the largest share exceeds the mean by at most
    one piece.
    """
    pieces = [piece for tensor in sorted(tensors, key=lambda fact: fact.name) for piece in pieces_of(tensor)]
    shares: list[list[Piece]] = [[] for _ in range(world_size)]
    loads = [(0, rank) for rank in range(world_size)]
    for piece in sorted(pieces, key=lambda piece: (-piece.size, piece.name)):
        load, rank = heapq.heappop(loads)
        shares[rank].append(piece)
        heapq.heappush(loads, (load + piece.size, rank))
    return [_files(share) for share in shares]


def _files(share: list[Piece]) -> list[list[Piece]]:
    files: list[list[Piece]] = []
    filled = FILE_BYTES
    for piece in sorted(share, key=lambda piece: piece.name):
        if filled + piece.size > FILE_BYTES:
            files.append([])
            filled = 0
        files[-1].append(piece)
        filled += piece.size
    return files


def shard_path(rank: int, number: int) -> str:
    """Path in the checkpoint of a rank's file."""
    return f"tensors/rank-{rank:05d}-{number:03d}.safetensors"
