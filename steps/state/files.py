"""A state as the files of a checkpoint, and back.

``state.json`` holds the tree and, for each tensor, its type, shape and the pieces it was cut into; the pieces lie in
safetensors files, one or more per rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.state.filling import Read, Region, fill
from argosy.steps.state.matching import in_place, match
from argosy.steps.state.placement import local_of, my_blocks
from argosy.steps.state.share import Block, FileLayout
from argosy.steps.state.stored import STATE_PATH, StoredState, state_bytes, stored_state
from argosy.steps.state.tree import decode, encode

__all__ = ["STATE_PATH", "filled", "read_into", "read_state", "state_bytes"]


def filled(layout: FileLayout, source: Callable[[Block], Any]) -> bytes:
    """One safetensors file, of what ``source`` gives for each block. They are a copy."""
    import torch

    buffer = bytearray(layout.size)
    buffer[: len(layout.header)] = layout.header
    for block in layout.blocks:
        if block.piece.size:
            tensor = source(block)
            into = torch.frombuffer(buffer, dtype=tensor.dtype, count=tensor.numel(), offset=block.start)
            into.view(tensor.shape).copy_(tensor)
    return bytes(buffer)


def read_state(read: Read) -> tuple[int, Any]:
    """Step and state from the files; ``read`` gives the verified bytes of a path. Tensors are whole and on the CPU.

    Raises:
        ValueError: not a state of a version that we know, or its pieces do not cover a tensor.
    """
    stored = stored_state(read(STATE_PATH))
    tensors = _fetched(stored, list(stored.tensors), read)
    return stored.step, decode(stored.tree, tensors)


def read_into(read: Read, into: Any, *, strict: bool, touched: set[str] | None = None) -> tuple[int, Any]:
    """As :func:`read_state`, but the tensors of ``into`` are filled where they lie, whatever their placement.

    Of each tensor only what this rank holds is read. The state that is returned is ``into`` with the checkpoint's
    numbers, strings and arrays; values of the checkpoint that ``into`` has no place for are added to its dicts.
    ``touched``: names of tensors that an earlier call has filled from another checkpoint; once a byte is given out,
    those of this one are added.

    Raises:
        InputError: names, shapes or types differ (see :func:`argosy.steps.state.matching.match`), or the checkpoint
            lacks what was touched; nothing was filled. Tied tensors that differ in the checkpoint; all was filled.
        ValueError: as :func:`read_state`.
    """
    import torch

    touched = set() if touched is None else touched
    tree, tensors = encode(into)
    for device in {tensor.device for tensor in tensors.values() if tensor.device.type not in ("cpu", "meta")}:
        torch.accelerator.synchronize(device)  # what a stream still writes into them would come after us
    stored = stored_state(read(STATE_PATH))
    found = match(stored, tree, tensors, strict=strict)
    if stale := sorted(touched - found.tensors.keys()):
        raise InputError(f"the checkpoint of step {stored.step} lacks {', '.join(map(repr, stale[:5]))}")
    regions: dict[str, list[Region]] = {}
    for name, source in found.tensors.items():
        regions.setdefault(source, []).extend(my_blocks(name, tensors[name]))
    twins = [(path, name, source, torch.empty_like(local_of(tensors[name]))) for path, name, source in found.twins]
    for _, name, source, copy in twins:
        regions.setdefault(source, []).extend(my_blocks(name, tensors[name], copy))

    def noted(path: str) -> bytearray | memoryview:
        raw = read(path)
        touched.update(found.tensors)
        return raw

    fill(stored, regions, noted)
    for path, name, _, copy in twins:
        _check_equal(path, local_of(tensors[name]), copy)
    arrays = _fetched(stored, sorted(found.arrays), read)
    mine: dict[Any, Any] = {in_place(name): tensor for name, tensor in tensors.items()}
    return stored.step, decode(found.tree, mine | arrays)


def _check_equal(path: str, mine: Any, twin: Any) -> None:
    import torch

    if not torch.equal(*(tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (mine, twin))):
        raise InputError(f"{path} is tied to another tensor here, and the checkpoint holds two that differ: untie them")


def _fetched(stored: StoredState, names: list[str], read: Read) -> dict[Any, Any]:
    import torch

    tensors = {
        name: torch.empty(stored.tensors[name].shape, dtype=getattr(torch, stored.tensors[name].dtype))
        for name in names
    }
    fill(stored, {name: my_blocks(name, tensor) for name, tensor in tensors.items()}, read)
    return dict(tensors)
