"""How a rank's tensors get into its arena: worked out once for a layout, then a few memory copies per save."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy.steps.checkpointer.arena import BOARD, PAGE, Arena
from argosy.steps.checkpointer.pinning import pin
from argosy.steps.state.share import Block, FileLayout, layout_of, source_of


@dataclass(frozen=True)
class _Copy:
    """Contiguous bytes on the CPU: ``size`` of them from ``skip`` bytes behind the tensor's first."""

    tensor: int
    skip: int
    at: int
    size: int


class Snapshot:
    """The plan of one layout. ``fits`` says whether a state still has it."""

    def __init__(self, tensors: Mapping[str, Any], rank: int, world_size: int) -> None:
        """Raises InputError as :func:`argosy.steps.state.share.layout_of` does."""
        self.layout = layout_of(tensors, rank, world_size)
        self._names = list(tensors)
        self._signatures = [_signature(tensor) for tensor in tensors.values()]
        self.starts: list[int] = []
        end = BOARD
        for file in self.layout.files:
            self.starts.append(end)
            end += -(-file.size // PAGE) * PAGE
        self.size = end
        """Bytes of an arena that holds all files."""
        self.window = BOARD + max((file.size for file in self.layout.files), default=0)
        """Bytes of an arena that holds one file at a time."""
        numbers = {name: number for number, name in enumerate(tensors)}
        self._plans = [self._plan(file, tensors, numbers) for file in self.layout.files]
        self.devices = {tensor.device for tensor in tensors.values() if tensor.device.type not in ("cpu", "meta")}
        """That copies come from, and that are waited for."""
        self._types = {name: tensor.dtype for name, tensor in tensors.items()}
        self._known: dict[int, tuple[Any, list[Any]]] = {}

    def fits(self, tensors: Mapping[str, Any]) -> bool:
        """Whether names, types, shapes, strides and placement are those of the plan."""
        return list(tensors) == self._names and self._signatures == [_signature(t) for t in tensors.values()]

    def _plan(
        self, file: FileLayout, tensors: Mapping[str, Any], numbers: Mapping[str, int]
    ) -> tuple[list[_Copy], list[Block]]:
        plain, others = [], []
        for block in file.blocks:
            tensor = tensors[block.piece.tensor]
            source = source_of(tensors, block)
            if not block.piece.size:
                continue
            if source.is_cpu and source.is_contiguous() and not source.is_neg() and not source.is_conj():
                skip = source.data_ptr() - _local(tensor).data_ptr()
                plain.append(_Copy(numbers[block.piece.tensor], skip, block.start, block.piece.size))
            else:
                others.append(block)
        return plain, others

    def copy(self, number: int, tensors: Mapping[str, Any], arena: Arena, start: int) -> None:
        """File ``number`` into the arena at ``start``; whole when :meth:`settle` has returned."""
        file = self.layout.files[number]
        base = arena.address + start
        ctypes.memmove(base, file.header, len(file.header))
        plain, others = self._plans[number]
        addresses = self._addresses(tensors) if plain else []
        for copy in plain:
            # memmove and not Tensor.copy_: it writes past the cache, and costs less than a microsecond to call.
            ctypes.memmove(base + copy.at, addresses[copy.tensor] + copy.skip, copy.size)
        for block, into in zip(others, self._places(number, arena, start) if others else [], strict=True):
            tensor = tensors[block.piece.tensor]
            # All of a plain tensor, as most are, needs no view of a part of it.
            source = tensor if type(tensor) is type(into) and tensor.shape == into.shape else source_of(tensors, block)
            into.copy_(source, non_blocking=True)

    def _places(self, number: int, arena: Arena, start: int) -> list[Any]:
        """A tensor over the arena for each block of the file that torch copies; made anew only for another map."""
        import torch

        where = (arena.address, start)
        known, places = self._known.get(number, (None, []))
        if known != where:
            with torch.inference_mode(False):
                places = [
                    _place(block, self._types[block.piece.tensor], arena, start) for block in self._plans[number][1]
                ]
            self._known[number] = (where, places)
        return places

    def _addresses(self, tensors: Mapping[str, Any]) -> list[int]:
        return [_local(tensor).data_ptr() for tensor in tensors.values()]

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


def _place(block: Block, dtype: Any, arena: Arena, start: int) -> Any:
    import torch

    piece = block.piece
    return torch.frombuffer(arena.map, dtype=dtype, count=prod(piece.shape), offset=start + block.start).view(
        piece.shape
    )


def _local(tensor: Any) -> Any:
    """What this rank holds of it."""
    return getattr(tensor, "_local_tensor", tensor)


def _signature(tensor: Any) -> tuple[Any, ...]:
    local = getattr(tensor, "_local_tensor", None)
    if local is None:
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.is_neg(), tensor.is_conj()
    lazy = local.is_neg(), local.is_conj()
    return local.dtype, local.shape, local.stride(), local.device, lazy, tensor.shape, tensor.placements
