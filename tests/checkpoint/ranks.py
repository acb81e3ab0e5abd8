"""What the ranks of ``test_torchrun.py`` do: ``ranks.py TASK`` under torchrun, ``act`` in forked ones."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist

from argosy.steps.checkpointer import Checkpointer


def state(step: int) -> dict[str, Any]:
    made = torch.Generator().manual_seed(step)
    return {
        "model": {f"layer.{n}": torch.randn(200, 50, generator=made) for n in range(6)},
        "optimizer": {"state": {0: {"step": torch.tensor(float(step))}}, "groups": [{"betas": (0.9, 0.95)}]},
    }


def act(task: str) -> None:
    rank = int(os.environ["RANK"])
    checkpointer = Checkpointer(save_rng=True)
    restored = checkpointer.restore()
    if restored is None:
        print(f"rank {rank} from scratch", flush=True)
    else:
        expected = state(restored.step)
        assert restored.state["optimizer"] == expected["optimizer"], restored.state["optimizer"]
        assert all(torch.equal(restored.state["model"][k], v) for k, v in expected["model"].items())
        print(f"rank {rank} restored {restored.step} rng {restored.rng}", flush=True)
    if task == "save":
        for step in (10, 20):
            torch.manual_seed(1000 * rank + step)
            saved = checkpointer.save(step, state(step), final=step == 20)
            assert saved is not None
            print(f"rank {rank} saved {saved.step} {saved.digest}", flush=True)
    if task == "differ":
        checkpointer.save(30, {"w": torch.ones(3 + rank)}, final=True)
    if task == "refused":
        try:
            checkpointer.save(30, {"w": object() if rank == 1 else torch.ones(3)})
        finally:
            print(f"rank {rank} ended", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    act(sys.argv[1])
    dist.destroy_process_group()
