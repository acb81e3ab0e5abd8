"""What every contender trains: two ranks in step, each step written down with its time, a checkpoint now and then.

``ranks.py TOLD STEPS STEP_SECONDS``: TOLD is a folder, ``steps`` in it has a line "TIME PROCESS" per step of rank 0,
``pid-RANK`` the process that is that rank now.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

EVERY = 5


def main() -> None:
    """Train from what was saved last, or from the beginning."""
    told, steps, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    dist.init_process_group("gloo")
    rank, saved = dist.get_rank(), Path("out/state.pt")
    (told / f"pid-{rank}").write_text(str(os.getpid()))
    step = torch.load(saved)["step"] if saved.exists() else 0
    while step < steps:
        time.sleep(seconds)
        dist.all_reduce(torch.ones(1000))
        step += 1
        if rank == 0:
            with (told / "steps").open("a") as log:
                log.write(f"{time.time():.6f} {os.getpid()}\n")
            print(f"step {step} loss {1 / step:.4f}", flush=True)
            if step % EVERY == 0:
                saved.parent.mkdir(exist_ok=True)
                torch.save({"step": step}, saved.with_suffix(".part"))
                saved.with_suffix(".part").replace(saved)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
