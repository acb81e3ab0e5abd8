"""What ``state.json`` says: the tree, and where each tensor's pieces lie."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

FORMAT = "argosy.state/1"
STATE_PATH = "state.json"


@dataclass(frozen=True)
class StoredPiece:
    """A block of a tensor under ``name`` in the safetensors file ``file``."""

    file: str
    name: str
    offset: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StoredTensor:
    """``dtype`` as in ``float32``; the pieces cover ``shape`` exactly once."""

    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[StoredPiece, ...]


@dataclass(frozen=True)
class StoredState:
    """A state as it lies in a checkpoint."""

    step: int
    tree: Any
    """See :mod:`argosy.steps.state.tree`."""
    tensors: Mapping[str, StoredTensor]


def state_bytes(step: int, tree: Any, tensors: Mapping[str, Any]) -> bytes:
    """``state.json``; ``tensors`` as in :class:`argosy.steps.state.share.Layout`."""
    record: dict[str, Any] = {"format": FORMAT, "step": step, "tree": tree, "tensors": tensors}
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode()


def stored_state(raw: bytes | bytearray | memoryview) -> StoredState:
    """The content of ``state.json``.

    Raises:
        ValueError: not a state of a version that we know, or the pieces do not cover a tensor.
    """
    record = json.loads(str(raw, "utf-8"))
    if record.get("format") != FORMAT:
        raise ValueError(f"state of format {record.get('format')!r}; this argosy reads {FORMAT}")
    tensors = {name: _stored(name, facts) for name, facts in record["tensors"].items()}
    return StoredState(int(record["step"]), record["tree"], tensors)


def _stored(name: str, facts: Mapping[str, Any]) -> StoredTensor:
    shape = tuple(facts["shape"])
    pieces = tuple(StoredPiece(p["file"], p["name"], tuple(p["offset"]), tuple(p["shape"])) for p in facts["pieces"])
    for piece in pieces:
        ends = [start + length for start, length in zip(piece.offset, piece.shape, strict=True)]
        if any(end > limit or start < 0 for start, end, limit in zip(piece.offset, ends, shape, strict=True)):
            raise ValueError(f"piece {piece.name!r} lies outside of its tensor of shape {shape}")
    if sum(prod(piece.shape) for piece in pieces) != prod(shape) or _overlap(pieces):
        raise ValueError(f"tensor {name!r} is not covered by its pieces")
    return StoredTensor(facts["dtype"], shape, pieces)


def _overlap(pieces: Sequence[StoredPiece]) -> bool:
    """Sizes that add up may still hide a hole behind an overlap."""
    full = [piece for piece in pieces if prod(piece.shape)]
    if len(full) < 2:
        return False
    axis = max(range(len(full[0].shape)), key=lambda axis: len({piece.offset[axis] for piece in full}))
    near: list[StoredPiece] = []
    for piece in sorted(full, key=lambda piece: piece.offset[axis]):
        near = [other for other in near if other.offset[axis] + other.shape[axis] > piece.offset[axis]]
        if any(_meet(piece, other) for other in near):
            return True
        near.append(piece)
    return False


def _meet(one: StoredPiece, other: StoredPiece) -> bool:
    sides = zip(one.offset, one.shape, other.offset, other.shape, strict=True)
    return all(a < b + m and b < a + n for a, n, b, m in sides)
