"""What exact training costs beside DistributedDataParallel: torchrun --nproc-per-node 2 -m benchmarks.exact_cost

The contenders take turns in the same two processes, round by round; shown is the median over rounds of a step's wall
time divided by DDP's in the same round. Data loading is the same for both and left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from argosy import ExactDataParallel, ResumableLoader
from argosy.steps.exact.loader import Shard

FEATURES, CLASSES, BATCH = 64, 10, 128


def model_of(width: int) -> nn.Sequential:
    """The example's model, or a wider one."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    )


def ddp(width: int) -> Callable[[], None]:
    """One step of DDP: half the batch per rank."""
    model = DistributedDataParallel(model_of(width))
    optimizer = torch.optim.AdamW(model.parameters())
    points, labels = batch(BATCH // dist.get_world_size())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(points), labels).backward()
        optimizer.step()

    return step


def exact(width: int, virtual_shards: int) -> Callable[[], None]:
    """One exact step of the same global batch."""
    model = model_of(width)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.zeros(BATCH, 1))
    loader = ResumableLoader(data, global_batch_size=BATCH, seed=0, virtual_shards=virtual_shards)
    trained = ExactDataParallel(model, loader)
    mine = [number for number in loader.rounds() if number < virtual_shards]
    shards = [Shard(1, number, 1 / virtual_shards, batch(BATCH // virtual_shards)) for number in mine]

    def step() -> None:
        trained.backward(1, shards, lambda given: F.cross_entropy(model(given[0]), given[1]))
        optimizer.step()

    return step


def batch(samples: int) -> tuple[Tensor, Tensor]:
    """Points and labels."""
    return torch.randn(samples, FEATURES), torch.randint(CLASSES, (samples,))


def seconds(step: Callable[[], None], times: int) -> float:
    """Wall seconds of one step; every rank's, since steps meet."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(times):
        step()
    return (time.perf_counter() - began) / times


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10, help="of each contender per round")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for width in (256, 1024):
        arms = {"DDP": ddp(width), **{f"exact, {count} shards": exact(width, count) for count in (2, 4, 8)}}
        rounds: list[dict[str, float]] = []
        for number in range(args.rounds + 1):
            order = list(arms) if number % 2 else list(arms)[::-1]
            rounds.append({name: seconds(arms[name], args.steps) for name in order})
        if dist.get_rank() == 0:
            size = sum(parameter.numel() for parameter in model_of(width).parameters()) / 1e6
            print(f"{size:.2f}M parameters, batch {BATCH} on {dist.get_world_size()} ranks")
            for name in arms:
                median = statistics.median(each[name] for each in rounds[1:])
                ratio = statistics.median(each[name] / each["DDP"] for each in rounds[1:])
                print(f"  {name:<16} {1000 * median:8.2f} ms  {ratio:5.2f}x", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
