"""Sums tensors over all virtual shards in the order of the shards, whatever the number of ranks.

Floating-point addition is not associative, so a sum has the same bits only if its order is the same. Shard ``v``
belongs to rank ``v % world_size``: after each round the ranks hold shards that follow one another, and adding them in
the order of the ranks, round by round, adds shard 0, 1, 2, … for any number of ranks. Each rank adds one slice of
every bucket (all-to-all) and the finished slices are gathered once per step, so a rank receives ``rounds + 1`` times
the size of the gradients, as a ring all-reduce does for one round. Collectives only move bytes here: none adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class _Piece:
    tensor: int
    start: int
    length: int


@dataclass
class _Bucket:
    pieces: list[_Piece]
    dtype: torch.dtype
    waiting: list[Tensor]
    """Rounds that were not sent yet."""
    total: Tensor
    """This rank's slice of the sum; the slices together may be padded by less than one element per rank."""


class ShardSum:
    """The sum of one step. Every rank calls :meth:`add` once per round, then :meth:`result`."""

    def __init__(self, like: Sequence[Tensor], *, world_size: int, bucket_bytes: int) -> None:
        """``like``: tensors with the shapes and types of the addends. Sums of bf16 and fp16 are kept in float32."""
        self._like = like
        self._world = world_size
        self._device = _meeting_place(like[0].device) if world_size > 1 else like[0].device
        self._buckets = self._planned(bucket_bytes)
        # Small models send several rounds at once: what a message costs does not depend on its size then.
        size = sum(tensor.numel() * tensor.element_size() for tensor in like)
        self._rounds_at_once = max(1, bucket_bytes // max(1, size))

    def add(self, addends: Sequence[Tensor | None]) -> None:
        """One round: this rank's shard; None stands for zeros (nothing was computed there)."""
        for bucket in self._buckets:
            bucket.waiting.append(self._packed(bucket, addends))
            if len(bucket.waiting) == self._rounds_at_once:
                self._send(bucket)

    def result(self) -> list[Tensor]:
        """The sums, with the types and layouts of ``like``; the next step begins at zero."""
        sums = [torch.empty_like(tensor) for tensor in self._like]
        flat = [torch.empty(each.numel(), dtype=each.dtype, device=each.device) for each in sums]
        for bucket in self._buckets:
            self._send(bucket)
            whole = bucket.total
            if self._world > 1:
                whole = torch.empty(bucket.total.numel() * self._world, dtype=whole.dtype, device=whole.device)
                dist.all_gather_into_tensor(whole, bucket.total)
            at = 0
            for piece in bucket.pieces:
                flat[piece.tensor].narrow(0, piece.start, piece.length).copy_(whole.narrow(0, at, piece.length))
                at += piece.length
            bucket.total.zero_()
        for each, values in zip(sums, flat, strict=True):
            each.copy_(values.view(each.shape))
        return sums

    def _send(self, bucket: _Bucket) -> None:
        if not bucket.waiting:
            return
        rounds = torch.stack([packed.view(self._world, -1) for packed in bucket.waiting], dim=1)
        bucket.waiting.clear()
        received = rounds
        if self._world > 1:
            received = torch.empty_like(rounds)
            dist.all_to_all_single(received, rounds)
        for round_number in range(received.shape[1]):
            for rank in range(self._world):
                bucket.total += received[rank, round_number]

    def _packed(self, bucket: _Bucket, addends: Sequence[Tensor | None]) -> Tensor:
        packed = torch.zeros(bucket.total.numel() * self._world, dtype=bucket.dtype, device=self._device)
        at = 0
        for piece in bucket.pieces:
            addend = addends[piece.tensor]
            if addend is not None:
                packed.narrow(0, at, piece.length).copy_(addend.reshape(-1).narrow(0, piece.start, piece.length))
            at += piece.length
        return packed

    def _planned(self, bucket_bytes: int) -> list[_Bucket]:
        buckets: list[_Bucket] = []
        for dtype in dict.fromkeys(tensor.dtype for tensor in self._like):
            room, pieces = max(1, bucket_bytes // dtype.itemsize), list[_Piece]()
            left = room
            for number, tensor in enumerate(self._like):
                start = tensor.numel() if tensor.dtype != dtype else 0
                while start < tensor.numel():
                    length = min(left, tensor.numel() - start)
                    pieces.append(_Piece(number, start, length))
                    start, left = start + length, left - length
                    if left == 0:
                        buckets.append(self._bucket(pieces, dtype))
                        pieces, left = [], room
            if pieces:
                buckets.append(self._bucket(pieces, dtype))
        return buckets

    def _bucket(self, pieces: list[_Piece], dtype: torch.dtype) -> _Bucket:
        length = sum(piece.length for piece in pieces)
        total = torch.zeros(
            -(-length // self._world), dtype=torch.promote_types(dtype, torch.float32), device=self._device
        )
        return _Bucket(pieces, dtype, [], total)


def _meeting_place(device: torch.device) -> torch.device:
    # gloo alone moves tensors of the CPU; a sum of elements has the same bits there.
    return torch.device("cpu") if str(dist.get_backend()) == "gloo" else device
