"""``argosy.ExactDataParallel``: data-parallel gradients whose bits do not depend on the number of ranks."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.contract.errors import InputError
from argosy.steps.exact import determinism
from argosy.steps.exact.generators import AFTER, set_generators
from argosy.steps.exact.loader import ResumableLoader, Shard
from argosy.steps.exact.model import Buffers, check_model
from argosy.steps.exact.shard_sum import ShardSum


class ExactDataParallel:
    """Takes DistributedDataParallel's place where a run must be the same to the bit on 1, 2 or 100 ranks.

    The global batch is cut into a fixed number of virtual shards. Each rank computes its shards one by one with random
    numbers that follow from (seed, step, shard), and the gradients are added in the order of the shards. The model
    stays as it is (no ``.module``). Gradient accumulation is more shards than ranks.
    """

    def __init__(
        self,
        model: nn.Module,
        loader: ResumableLoader,
        *,
        threads: int = 1,
        strict: bool = True,
        bucket_megabytes: float = 25.0,
    ) -> None:
        """Sets deterministic kernels and the number of threads for this process.

        ``threads``: of the CPU, the same whatever the number of ranks. ``strict``: refuse to go on where
        :meth:`load_state_dict` finds another environment; False prints what changed. ``bucket_megabytes``: memory for
        messages, up to three times; the sum itself is spread over the ranks.

        Raises:
            InputError: a model that cannot be exact (DDP, FSDP, several devices): the reason.
        """
        self.model = model
        self._loader = loader
        self._threads = threads
        self._strict = strict
        self._bucket_bytes = max(1, int(bucket_megabytes * 2**20))
        self._device = check_model(model)
        self._ranks_agreed = False
        self._sum: ShardSum | None = None
        self._summed: list[tuple[torch.Size, torch.dtype]] = []
        determinism.enforce(self._device, threads)

    # ---- one step

    def backward(self, step: int, shards: Sequence[Shard], loss_of: Callable[[Any], Tensor]) -> float:
        """Leave the gradient of step ``step`` in ``.grad`` of every parameter; the mean loss. Collective.

        ``shards``: what the loader gave for this step. ``loss_of(batch)``: the mean loss over a batch's samples, a
        scalar. What ``.grad`` held before is replaced, so no ``zero_grad`` is needed. Afterwards the generators stand
        where (seed, step) puts them, on every rank alike.

        Raises:
            InputError: another thread count or kernel choice than at the start, shards of another rank or step, a
                sparse gradient, a buffer that the forward pass changed; ranks that do not hold the same weights.
        """
        determinism.check(self._threads)
        self._agree()
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        buffers = Buffers(self.model)
        total = self._sum_of([*parameters, *buffers.weighted(0.0)])
        mine = {shard.number: shard for shard in shards}
        self._check_shards(step, shards, mine)
        told = _Told(len(parameters))
        for number in self._loader.rounds():
            shard = mine.get(number)
            addends: list[Tensor | None] = [None] * (len(parameters) + len(buffers.statistics))
            if shard is not None:
                addends = self._one_shard(step, shard, loss_of, parameters, buffers, told)
            total.add(addends)
        self._finish(parameters, buffers, total.result(), told.gathered(self._device, self._loader))
        set_generators(self._loader.seed, step, AFTER)
        return told.loss

    def _one_shard(
        self,
        step: int,
        shard: Shard,
        loss_of: Callable[[Any], Tensor],
        parameters: list[nn.Parameter],
        buffers: Buffers,
        told: _Told,
    ) -> list[Tensor | None]:
        buffers.restore()
        for parameter in parameters:
            parameter.grad = None
        set_generators(self._loader.seed, step, shard.number)
        loss = loss_of(shard.batch)
        if loss.dim() != 0:
            raise InputError(f"the loss has shape {tuple(loss.shape)}: the mean over the shard's samples is needed")
        (loss * shard.weight).backward()  # type: ignore[no-untyped-call]
        buffers.check_still()
        told.shard(shard, loss, parameters)
        return [*(parameter.grad for parameter in parameters), *buffers.weighted(shard.weight)]

    def _finish(
        self, parameters: list[nn.Parameter], buffers: Buffers, sums: list[Tensor], used: Sequence[bool]
    ) -> None:
        for parameter, gradient, any_shard in zip(parameters, sums, used, strict=False):
            # A parameter that no shard used has no gradient, as after an ordinary backward pass: optimizers skip it.
            parameter.grad = gradient if any_shard else None
        buffers.settle(sums[len(parameters) :])

    def _sum_of(self, like: list[Tensor]) -> ShardSum:
        kinds = [(tensor.shape, tensor.dtype) for tensor in like]
        if self._sum is None or kinds != self._summed:
            self._summed = kinds
            shapes = [tensor.detach() for tensor in like]
            self._sum = ShardSum(shapes, world_size=self._loader.world_size, bucket_bytes=self._bucket_bytes)
        return self._sum

    def _check_shards(self, step: int, shards: Sequence[Shard], mine: Mapping[int, Shard]) -> None:
        strange = [s for s in shards if s.step != step or s.number % self._loader.world_size != self._loader.rank]
        if strange or len(mine) != len(shards):
            raise InputError(
                f"backward(step={step}) on rank {self._loader.rank} got shards "
                f"{[(shard.step, shard.number) for shard in shards]} (step, number): give it what "
                "ResumableLoader.shards yielded for this step"
            )

    # ---- agreement

    def _agree(self) -> None:
        if self._ranks_agreed:
            return
        facts = {**determinism.environment(self._device), **self._loader.recipe()}
        records = Ranks().gather({"facts": facts, "weights": _digest(self.model)})
        for rank, record in enumerate(records):
            if changed := determinism.differences(records[0]["facts"], record["facts"]):
                raise InputError(f"rank 0 and rank {rank} cannot compute the same bits: {'; '.join(changed)}")
            if record["weights"] != records[0]["weights"]:
                raise InputError(
                    f"rank 0 and rank {rank} hold different weights: seed before the model is made "
                    "(torch.manual_seed), or restore on every rank"
                )
        self._ranks_agreed = True

    def state_dict(self) -> dict[str, Any]:
        """What the bits depend on besides the weights: belongs into every checkpoint. A few strings and numbers."""
        return {"recipe": self._loader.recipe(), "environment": determinism.environment(self._device)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Look that a restored run can go on with the same bits.

        Raises:
            InputError: another seed, batch, number of shards or dataset size; with ``strict`` also another version of
                torch, device, processor or number of threads. Each by name.
        """
        if changed := determinism.differences(state["recipe"], self._loader.recipe()):
            raise InputError(f"the checkpoint was trained with another recipe: {'; '.join(changed)}")
        changed = determinism.differences(state["environment"], determinism.environment(self._device))
        if changed and self._strict:
            raise InputError(
                f"from here on other bits than the uninterrupted run's: {'; '.join(changed)}. "
                "ExactDataParallel(strict=False) goes on all the same"
            )
        if changed and self._loader.rank == 0:
            print(f"argosy: exact: from here on other bits than the uninterrupted run's: {'; '.join(changed)}")


class _Told:
    """What the ranks tell each other about a step's shards besides gradients: losses, and which parameters were used.

    The losses stay on the device until the step's end, so that no shard waits for the one before.
    """

    def __init__(self, parameters: int) -> None:
        self._losses: list[tuple[Shard, Tensor]] = []
        self._used = [False] * parameters
        self.loss = 0.0

    def shard(self, shard: Shard, loss: Tensor, parameters: list[nn.Parameter]) -> None:
        self._losses.append((shard, loss.detach()))
        for number, parameter in enumerate(parameters):
            if parameter.grad is not None and parameter.grad.is_sparse:
                raise InputError("a parameter has a sparse gradient (Embedding(sparse=True)?): dense ones are needed")
            self._used[number] |= parameter.grad is not None

    def gathered(self, device: torch.device, loader: ResumableLoader) -> list[bool]:
        """Which parameters any shard used; ``loss`` is then the mean in the order of the shards."""
        rounds = len(loader.rounds())
        mine = [0.0] * (2 * rounds)
        for shard, loss in self._losses:
            at = 2 * (shard.number // loader.world_size)
            mine[at : at + 2] = shard.weight, float(loss)
        raw = struct.pack(f"<{2 * rounds}d", *mine) + bytes(self._used)
        everyone = _all_gather(raw, device, loader.world_size)
        told = [struct.unpack_from(f"<{2 * rounds}d", each) for each in everyone]
        for round_number in range(rounds):
            for rank in range(loader.world_size):
                weight, loss = told[rank][2 * round_number : 2 * round_number + 2]
                self.loss += weight * loss if weight else 0.0
        marks = [each[16 * rounds :] for each in everyone]
        return [any(mark[number] for mark in marks) for number in range(len(self._used))]


def _all_gather(raw: bytes, device: torch.device, world_size: int) -> list[bytes]:
    if world_size == 1:
        return [raw]
    meeting = torch.device("cpu") if str(dist.get_backend()) == "gloo" else device
    mine = torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(meeting)
    everyone = torch.empty(world_size * len(raw), dtype=torch.uint8, device=meeting)
    dist.all_gather_into_tensor(everyone, mine)
    whole = bytes(everyone.cpu().numpy())
    return [whole[at : at + len(raw)] for at in range(0, len(whole), len(raw))]


def _digest(model: nn.Module) -> str:
    found = hashlib.sha256(json.dumps([name for name, _ in model.named_parameters()]).encode())
    for tensor in (*model.parameters(), *model.buffers()):
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
