"""What one rank writes of a state: safetensors files laid out to the byte, before a byte of a tensor is moved.

A layout says where in its file each block goes, so that a save can copy tensors straight into a buffer that already
is the file. Laying out is a pure function of names, shapes and placement: it is done once, not at each save.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.state.placement import facts_of, local_of, narrowed
from argosy.steps.state.plan import Piece, TensorFacts, fingerprint, plan, shard_path

_ALIGN = 8
# https://github.com/huggingface/safetensors#format
_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "complex64": "C64",
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A piece of a tensor and the bytes ``[start, start + piece.size)`` that it takes in its file."""

    piece: Piece
    start: int


@dataclass(frozen=True)
class FileLayout:
    """One safetensors file: ``header`` first, then the blocks without gaps; ``size`` is that of all, in bytes."""

    path: str
    header: bytes
    blocks: tuple[Block, ...]
    size: int


@dataclass(frozen=True)
class Layout:
    """Everything about a save that does not change while names, types, shapes and placement stay."""

    fingerprint: str
    """Equal on all ranks, or the shares would leave holes."""
    files: tuple[FileLayout, ...]
    """This rank's."""
    tensors: Mapping[str, Any]
    """The ``tensors`` of state.json: type, shape and pieces of every tensor, over all ranks."""


def layout_of(tensors: Mapping[str, Any], rank: int, world_size: int) -> Layout:
    """What ``rank`` of ``world_size`` writes of ``tensors`` (as :func:`argosy.steps.state.tree.encode` names them).

    Reads names, types, shapes and placements only, and talks to nobody: every rank computes the same description.

    ``tensors`` may mix plain tensors, which every rank holds whole, and DTensors; each block is written once, what
    several ranks hold by the one with the least to write.

    Raises:
        InputError: a type that safetensors does not have; a DTensor that is Partial or lies in no way torch.chunk does.
    """
    return lay_out(facts_of(tensors), rank, world_size)


def source_of(tensor: Any, block: Block) -> Any:
    """This rank's view of ``tensor`` that ``block`` holds: ``block.piece.shape``, contiguous or not, on its device."""
    return narrowed(local_of(tensor), block.piece.source, block.piece.shape)


def lay_out(facts: Sequence[TensorFacts], rank: int, world_size: int) -> Layout:
    """The layout of a state of which only the facts are known; see :func:`layout_of`."""
    for fact in facts:
        check_type(fact.name, fact.dtype)
    shares = plan(facts, world_size)
    types = {fact.name: fact.dtype for fact in facts}
    described: dict[str, Any] = {
        fact.name: {"dtype": fact.dtype, "shape": list(fact.shape), "pieces": []} for fact in facts
    }
    for writer, files in enumerate(shares):
        for number, pieces in enumerate(files):
            for piece in pieces:
                block = {"offset": list(piece.offset), "shape": list(piece.shape)}
                path = shard_path(writer, number)
                described[piece.tensor]["pieces"].append({"file": path, "name": piece.name, **block})
    mine = tuple(file_layout(shard_path(rank, n), pieces, types) for n, pieces in enumerate(shares[rank]))
    return Layout(fingerprint(facts), mine, described)


def check_type(name: str, dtype: str) -> None:
    """InputError for a type that safetensors does not have."""
    if dtype not in _DTYPES:
        raise InputError(
            f"state tensor {name!r} is of type {dtype}, which safetensors does not have: convert it before saving"
        )


def file_layout(path: str, pieces: Sequence[Piece], types: Mapping[str, str]) -> FileLayout:
    """Header and places of the blocks of one file; ``types``: tensor name to dtype, as in ``float32``."""
    # Larger items first: a block then begins at a multiple of its item's size, as readers that map files need.
    ordered = sorted(pieces, key=lambda piece: (-_item_size(types[piece.tensor]), piece.name))
    entries: dict[str, Any] = {}
    at = 0
    for piece in ordered:
        offsets = [at, at + piece.size]
        entries[piece.name] = {
            "dtype": _DTYPES[types[piece.tensor]], "shape": list(piece.shape), "data_offsets": offsets,
        }  # fmt: skip
        at += piece.size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // _ALIGN) * _ALIGN)
    header = len(text).to_bytes(8, "little") + text
    blocks = tuple(Block(piece, len(header) + entries[piece.name]["data_offsets"][0]) for piece in ordered)
    return FileLayout(path, header, blocks, len(header) + at)


def _item_size(dtype: str) -> int:
    code = _DTYPES[dtype]
    return 1 if code == "BOOL" else int("".join(filter(str.isdigit, code.split("_")[0]))) // 8
