"""How a rank's tensors get into its arena: worked out once for a layout, then a few memory copies per save."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.steps.checkpointer.arena import BOARD, PAGE, Arena
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
        """Of an arena that holds all files."""
        self.window = BOARD + max((file.size for file in self.layout.files), default=0)
        """Of an arena that holds one file at a time."""
        numbers = {name: number for number, name in enumerate(tensors)}
        self._plans = [self._plan(file, tensors, numbers) for file in self.layout.files]
        self.device = next((t.device for t in tensors.values() if t.device.type not in ("cpu", "meta")), None)

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
        """File ``number`` into the arena at ``start``; whole when :meth:`finish` has returned."""
        file = self.layout.files[number]
        base = arena.address + start
        ctypes.memmove(base, file.header, len(file.header))
        plain, others = self._plans[number]
        addresses = self._addresses(tensors)
        for copy in plain:
            # memmove and not Tensor.copy_: it writes past the cache, and costs less than a microsecond to call.
            ctypes.memmove(base + copy.at, addresses[copy.tensor] + copy.skip, copy.size)
        if others:
            _copy_others(others, tensors, arena, start)

    def _addresses(self, tensors: Mapping[str, Any]) -> list[int]:
        return [_local(tensor).data_ptr() for tensor in tensors.values()]

    def pin(self, arena: Arena) -> None:
        """Let a GPU copy straight into the arena. Not proven here for want of a GPU; without it CUDA copies twice."""
        if self.device is not None and self.device.type == "cuda":
            import torch

            with contextlib.suppress(RuntimeError):
                runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
                torch.cuda.check_error(runtime.cudaHostRegister(arena.address, arena.size, 0))
                arena.keep_mapped()

    def finish(self) -> None:
        """Wait for copies from a device. (Written for CUDA; proven on CPU only.)"""
        if self.device is not None:
            import torch

            torch.accelerator.synchronize(self.device)


def _copy_others(blocks: list[Block], tensors: Mapping[str, Any], arena: Arena, start: int) -> None:
    import torch

    for block in blocks:
        source = source_of(tensors, block)
        into = torch.frombuffer(arena.map, dtype=source.dtype, count=source.numel(), offset=start + block.start)
        into.view(source.shape).copy_(source, non_blocking=True)


def _local(tensor: Any) -> Any:
    """What this rank holds of it."""
    return getattr(tensor, "_local_tensor", tensor)


def _signature(tensor: Any) -> tuple[Any, ...]:
    local = getattr(tensor, "_local_tensor", None)
    if local is None:
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.is_cpu, tensor.is_neg(), tensor.is_conj()
    return local.dtype, local.shape, local.stride(), local.is_cpu, tensor.shape, tensor.placements
