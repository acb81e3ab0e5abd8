"""What the ranks of test_data_parallel.py do, once for each number of ranks in one process each."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from argosy import ExactDataParallel, ResumableLoader
from argosy.steps.contract.errors import InputError
from tests.exact.training import FEATURES, Points, digest, generators_now, parts


class Branches(nn.Module):
    """Parameters that some shards, or none, use; a bf16 layer; random numbers by all generators in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.even, self.odd, self.never = (nn.Linear(FEATURES, 6) for _ in range(3))
        self.bf16 = nn.Linear(FEATURES, 6).to(torch.bfloat16)

    def forward(self, points: Tensor, numbers: Tensor) -> Tensor:
        chosen = self.even if int(numbers[0]) % 2 == 0 else self.odd
        noise = random.random() + numpy.random.random() + torch.rand(1)
        return chosen(points) * noise + self.bf16(points.to(torch.bfloat16)).float()


def trained(
    model: nn.Module, loader: ResumableLoader, loss_of: Callable[[Any], Tensor], steps: int, **options: Any
) -> tuple[str, list[str]]:
    """(digest of weights, optimizer and generators, the losses' bits)."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    exact = ExactDataParallel(model, loader, **options)
    losses = []
    for step, shards in loader.shards():
        losses.append(exact.backward(step, shards, loss_of).hex())
        losses.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item().hex())
        optimizer.step()
        if step == steps:
            break
    bits = {name: value.view(torch.int16) if value.dtype == torch.bfloat16 else value
            for name, value in model.state_dict().items()}  # fmt: skip
    state = [(k, v["step"], v["exp_avg_sq"].float()) for k, v in optimizer.state_dict()["state"].items()]
    return digest([bits, state, generators_now()]), losses


def plain(shards: int, global_batch: int, epochs: int | None = None, megabytes: float = 0.001) -> Any:
    """The model of the kill test: batch norm, dropout."""
    model, _, _, _ = parts(3, 40, global_batch, shards)
    loader = ResumableLoader(Points(40), global_batch_size=global_batch, seed=3, virtual_shards=shards,
                             epochs=epochs)  # fmt: skip
    loss_of = lambda batch: F.cross_entropy(model(batch[0]), batch[1])  # noqa: E731
    return trained(model, loader, loss_of, 6, bucket_megabytes=megabytes)


def branches(shards: int, global_batch: int) -> Any:
    torch.manual_seed(1)
    model = Branches()
    loader = ResumableLoader(Points(41), global_batch_size=global_batch, seed=5, virtual_shards=shards)
    answer = trained(model, loader, lambda b: F.cross_entropy(model(b[0], b[2]), b[1]), 6, bucket_megabytes=0.0005)
    assert model.never.weight.grad is None
    return answer


def refused(which: str) -> str:
    """What the ranks are told."""
    try:
        {"weights": different_weights, "threads": different_threads}[which]()
    except InputError as error:
        return str(error)
    return "nothing"


def different_weights() -> Any:
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(FEATURES, 6)
    loader = ResumableLoader(Points(40), global_batch_size=8, seed=1, virtual_shards=2)
    step, shards = next(loader.shards())
    return ExactDataParallel(model, loader).backward(step, shards, lambda b: F.cross_entropy(model(b[0]), b[1]))


def different_threads() -> Any:
    model = nn.Linear(FEATURES, 6)
    loader = ResumableLoader(Points(40), global_batch_size=8, seed=1, virtual_shards=2)
    step, shards = next(loader.shards())
    exact = ExactDataParallel(model, loader, threads=1 + dist.get_rank())
    return exact.backward(step, shards, lambda b: F.cross_entropy(model(b[0]), b[1]))
