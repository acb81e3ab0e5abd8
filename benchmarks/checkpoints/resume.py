"""One rank that resumes: seconds from the start of its process until the state is in place, as one JSON line.

``argosy``: Checkpointer.restore into the sharded state. ``torch``: torch.load of the rank's own file, and the SHA-256
of the bytes loaded, into the same tensors.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import time
from pathlib import Path


def main() -> None:
    """Make, save (``--save``) or resume."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=["argosy", "torch"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    import torch
    import torch.distributed as dist

    imported = time.clock_gettime(time.CLOCK_BOOTTIME)
    from benchmarks.checkpoints import model as models

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model, optimizer = models.trained(dist.get_world_size())
    state = models.state_of(model, optimizer)
    dist.barrier()
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    if args.how == "argosy":
        from argosy import Checkpointer

        checkpointer = Checkpointer(args.folder / "argosy")
        if args.save:
            checkpointer.save(1, state, final=True)
        else:
            assert checkpointer.restore(into=state) is not None
    else:
        mine = models.local_tensors(state)
        path = args.folder / f"rank-{dist.get_rank()}.pt"
        if args.save:
            torch.save(mine, path)
        else:
            raw = path.read_bytes()
            hashlib.sha256(raw).hexdigest()
            for into, tensor in zip(mine, torch.load(io.BytesIO(raw), weights_only=True), strict=True):
                into.copy_(tensor)
    took = time.clock_gettime(time.CLOCK_BOOTTIME) - began
    both = torch.tensor([imported - _started() + took, took], dtype=torch.float64)
    dist.all_reduce(both, op=dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({"resume": float(both[0]), "load": float(both[1])}), flush=True)
    dist.destroy_process_group()


def _started() -> float:
    """When the kernel started this process, on the clock that counts from boot."""
    ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
