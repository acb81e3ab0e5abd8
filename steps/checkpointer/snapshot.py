"""How a rank's tensors get into its arena: worked out once for a layout, then a few memory copies per save."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy.steps.checkpointer.arena import BOARD, PAGE, Arena
from argosy.steps.checkpointer.pinning import pin
from argosy.steps.state.share import Block, layout_of, source_of


@dataclass(frozen=True)
class _Way:
    """Where a block goes: ``address`` in the arena, or ``into``, a tensor over that, where torch has to copy."""

    file: int
    block: Block
    skip: int
    """Bytes of the tensor before the block, where both are contiguous and on the CPU."""
    address: int
    into: Any


class Snapshot:
    """The plan of one layout. ``fits`` says whether a state still has it."""

    def __init__(self, tensors: Mapping[str, Any], rank: int, world_size: int) -> None:
        """Raises InputError as :func:`argosy.steps.state.share.layout_of` does."""
        self.layout = layout_of(tensors, rank, world_size)
        self.names = list(tensors)
        self._signatures = [_signature(tensor) for tensor in tensors.values()]
        self.starts: list[int] = []
        """Where each file begins in an arena that holds all of them."""
        end = BOARD
        for file in self.layout.files:
            self.starts.append(end)
            end += -(-file.size // PAGE) * PAGE
        self.size = end
        """Bytes of an arena that holds all files."""
        self.window = BOARD + max((file.size for file in self.layout.files), default=0)
        """Bytes of an arena that holds one file at a time."""
        self.devices = {tensor.device for tensor in tensors.values() if tensor.device.type not in ("cpu", "meta")}
        """That copies come from, and that are waited for."""
        self._types = {name: tensor.dtype for name, tensor in tensors.items()}
        self._skipped = {
            (number, block): _skipped(tensors[block.piece.tensor], block)
            for number, file in enumerate(self.layout.files)
            for block in file.blocks
            if block.piece.size
        }
        self._begins: list[tuple[int, int]] = []
        self._ways: dict[str, list[_Way]] = {}

    def fits(self, tensors: Mapping[str, Any]) -> bool:
        """Whether names, types, shapes, strides and placement are those of the plan."""
        return len(tensors) == len(self.names) and all(map(self.has, range(len(tensors)), tensors, tensors.values()))

    def has(self, number: int, name: str, tensor: Any) -> bool:
        """Whether the plan's tensor ``number`` is this one."""
        return (
            number < len(self.names) and self.names[number] == name and self._signatures[number] == _signature(tensor)
        )

    def aim(self, arena: Arena, *, in_turns: bool) -> None:
        """Have the files lie in the arena, which grows no more: side by side, or ``in_turns`` each at its beginning."""
        import torch

        self._begins = [(arena.address, BOARD if in_turns else start) for start in self.starts]
        self._ways = {name: [] for name in self.names}
        with torch.inference_mode(False):
            for (number, block), skip in self._skipped.items():
                name, (base, start) = block.piece.tensor, self._begins[number]
                into = None if skip >= 0 else _place(block, self._types[name], arena, start + block.start)
                self._ways[name].append(_Way(number, block, skip, base + start + block.start, into))

    def head(self, number: int) -> list[Any]:
        """Write what stands before the first block of file ``number``; its path, where it begins, and its bytes."""
        file, (base, start) = self.layout.files[number], self._begins[number]
        ctypes.memmove(base + start, file.header, len(file.header))
        return [file.path, start, file.size]

    def copy(self, name: str, tensor: Any, file: int | None = None) -> None:
        """The tensor's blocks into the arena, or those of one file; whole when :meth:`settle` has returned."""
        for way in self._ways[name]:
            if file is not None and way.file != file:
                continue
            if way.into is None:
                # memmove and not Tensor.copy_: it writes past the cache, and costs less than a microsecond to call.
                ctypes.memmove(way.address, _local(tensor).data_ptr() + way.skip, way.block.piece.size)
                continue
            # All of a plain tensor, as most are, needs no view of a part of it.
            whole = type(tensor) is type(way.into) and tensor.shape == way.into.shape
            way.into.copy_(tensor if whole else source_of(tensor, way.block), non_blocking=True)

    def pin(self, arena: Arena) -> str:
        """Let a GPU copy straight into the arena; "", or why it cannot."""
        for device in self.devices:
            if device.type == "cuda":
                return pin(arena, device)
        return ""

    def settle(self) -> None:
        """Wait for all that was queued on the devices, on any stream.

        Before the copies: steps that the script queued on streams of its own, which the copies would not wait for.
        After them: the copies.
        """
        import torch

        for device in self.devices:
            torch.accelerator.synchronize(device)


class Filling:
    """One save's copies, each begun as :func:`argosy.steps.state.tree.encode` comes upon its tensor.

    So a GPU's link has work from the first tensor on: to walk a state of some hundred takes milliseconds, of which
    training would wait for each.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._copied, self._fits = 0, True

    def __call__(self, name: str, tensor: Any) -> None:
        """Begin the tensor's copies, as long as the plan's order is kept."""
        self._fits = self._fits and self._snapshot.has(self._copied, name, tensor)
        if self._fits:
            self._snapshot.copy(name, tensor)
            self._copied += 1

    @property
    def whole(self) -> bool:
        """Whether the state was the plan's: all that is to be copied is under way."""
        return self._fits and self._copied == len(self._snapshot.names)


def _skipped(tensor: Any, block: Block) -> int:
    """As in ``_Way``; -1: torch has to copy."""
    source = source_of(tensor, block)
    if source.is_cpu and source.is_contiguous() and not source.is_neg() and not source.is_conj():
        return int(source.data_ptr() - _local(tensor).data_ptr())
    return -1


def _place(block: Block, dtype: Any, arena: Arena, at: int) -> Any:
    import torch

    shape = block.piece.shape
    return torch.frombuffer(arena.map, dtype=dtype, count=prod(shape), offset=at).view(shape)


def _local(tensor: Any) -> Any:
    """What this rank holds of it."""
    return getattr(tensor, "_local_tensor", tensor)


def _signature(tensor: Any) -> tuple[Any, ...]:
    local = getattr(tensor, "_local_tensor", None)
    if local is None:
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.is_neg(), tensor.is_conj()
    lazy = local.is_neg(), local.is_conj()
    return local.dtype, local.shape, local.stride(), local.device, lazy, tensor.shape, tensor.placements
