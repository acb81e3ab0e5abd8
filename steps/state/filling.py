"""Fill tensors from a stored state: any saved placement into any present one, only the files that it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy.steps.state.placement import narrowed
from argosy.steps.state.stored import StoredState

Read = Callable[[str], bytearray | memoryview]
"""The verified bytes of a file of the checkpoint; they are not kept."""
Region = tuple[tuple[int, ...], Any]
"""Offset in the whole tensor, and the memory to fill from there."""

READERS = 4
"""Files that are read, hashed and copied at once (hashing and copying leave the interpreter free)."""


@dataclass(frozen=True)
class _Copy:
    piece: str
    dtype: str
    start: tuple[int, ...]
    """In the piece."""
    shape: tuple[int, ...]
    into: Any


def fill(stored: StoredState, regions: Mapping[str, Sequence[Region]], read: Read) -> None:
    """Copy into every region of the named tensors; each file that holds a needed piece is read once.

    Raises:
        ValueError: a file does not hold what state.json says. What ``read`` raises.
    """
    by_file: dict[str, list[_Copy]] = {}
    for name, wanted in regions.items():
        for offset, into in wanted:
            _place(stored, name, offset, into, by_file)
    # Largest first, so that no thread is left with a large file at the end.
    order = sorted(by_file, key=lambda path: -sum(prod(copy.shape) for copy in by_file[path]))
    if len(order) <= 1:
        for path in order:
            _fill_from(read(path), path, by_file[path])
        return
    with ThreadPoolExecutor(READERS) as pool:
        for done in [pool.submit(lambda path: _fill_from(read(path), path, by_file[path]), path) for path in order]:
            done.result()


def _place(stored: StoredState, name: str, offset: tuple[int, ...], into: Any, by_file: dict[str, list[_Copy]]) -> None:
    missing, dtype = into.numel(), stored.tensors[name].dtype
    for piece in stored.tensors[name].pieces:
        first = tuple(map(max, offset, piece.offset))
        last = tuple(
            min(a + n, b + m) for a, n, b, m in zip(offset, into.shape, piece.offset, piece.shape, strict=True)
        )
        shape = tuple(end - start for start, end in zip(first, last, strict=True))
        if any(length <= 0 for length in shape):
            continue
        target = narrowed(into, _minus(first, offset), shape)
        by_file.setdefault(piece.file, []).append(_Copy(piece.name, dtype, _minus(first, piece.offset), shape, target))
        missing -= prod(shape)
    if missing:
        raise ValueError(f"tensor {name!r} is not covered by its pieces")


def _minus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _fill_from(raw: bytearray | memoryview, path: str, copies: Sequence[_Copy]) -> None:
    import torch

    length = int.from_bytes(raw[:8], "little")
    header = json.loads(bytes(raw[8 : 8 + length]))
    with torch.no_grad():
        for copy in copies:
            if copy.piece not in header:
                raise ValueError(f"{path} does not hold {copy.piece!r}")
            entry = header[copy.piece]
            source = _tensor(raw, 8 + length + entry["data_offsets"][0], entry["shape"], getattr(torch, copy.dtype))
            if 8 + length + entry["data_offsets"][1] > len(raw) or source.nbytes != _extent(entry):
                raise ValueError(f"{path} does not hold {copy.piece!r} in the type of its tensor")
            copy.into.copy_(narrowed(source, copy.start, copy.shape))


def _extent(entry: Mapping[str, Any]) -> int:
    first, last = entry["data_offsets"]
    return int(last) - int(first)


def _tensor(raw: bytearray | memoryview, start: int, shape: Sequence[int], dtype: Any) -> Any:
    import torch

    if not prod(shape):
        return torch.empty(shape, dtype=dtype)
    if start % dtype.itemsize:  # Another writer's file: torch wants an item to begin at a multiple of its size.
        raw, start = bytearray(raw[start : start + prod(shape) * dtype.itemsize]), 0
    return torch.frombuffer(raw, dtype=dtype, count=prod(shape), offset=start).view(tuple(shape))
