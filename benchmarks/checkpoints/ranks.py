"""One rank of the contest (started by torchrun): every round each contender saves once, in an order that turns around.

Rank 0 prints one JSON line per save: who, round, the stall and the time to durable in seconds, each the largest over
the ranks, which begin together.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist

from benchmarks.checkpoints import model as models
from benchmarks.checkpoints.savers import Argosy, AsyncDcp, DeepSpeedZero3, Floor, PerRank, Saver

STEP_SECONDS = 0.06


def main() -> None:
    """All rounds; round 0 holds each contender's first save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--width", type=int, default=models.WIDTH)
    parser.add_argument("--layers", type=int, default=models.LAYERS)
    parser.add_argument("--deepspeed", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model, optimizer = models.trained(dist.get_world_size(), args.width, args.layers)
    state = models.state_of(model, optimizer)
    size = sum(tensor.numel() * tensor.element_size() for tensor in models.local_tensors(state))
    contenders: list[Saver] = [
        Floor(state, args.folder),
        Argosy(state, args.folder),
        PerRank(state, args.folder),
        PerRank(state, args.folder, hashed=True),
        AsyncDcp(state, args.folder, "thread"),
        AsyncDcp(state, args.folder, "process"),
    ]
    if args.deepspeed:
        contenders.append(DeepSpeedZero3(args.folder, args.width, args.layers))
    _say({"bytes_per_rank": size, "world_size": dist.get_world_size()})
    for number in range(args.rounds + 1):
        for contender in contenders if number % 2 == 0 else contenders[::-1]:
            _settle()
            stall, durable = _timed(contender, number + 1)
            _say({"name": contender.name, "round": number, "stall": stall, "durable": durable})
    dist.destroy_process_group()


def _settle() -> None:
    """What the last contender left to the disk is not the next one's burden; then a few steps of training."""
    import os

    if dist.get_rank() == 0:
        os.sync()
    for _ in range(3):
        time.sleep(STEP_SECONDS)  # an accelerator computes: the CPU is free
    dist.barrier()


def _timed(contender: Saver, step: int) -> tuple[float, float]:
    dist.barrier()
    began = time.perf_counter()
    contender.save(step)
    stalled = time.perf_counter() - began
    contender.finish()
    times = torch.tensor([stalled, time.perf_counter() - began], dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return float(times[0]), float(times[1])


def _say(record: dict[str, object]) -> None:
    if dist.get_rank() == 0:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
