"""Train from tar archives that stay in their store: samples come by ranges, verified, ahead of the step.

python prepare.py && argosy run run.toml --inject kill:rank=1@step=30
torchrun --standalone --nproc-per-node 2 train.py --data .argosy/volumes/argosy/datasets/streaming
"""

import argparse
import hashlib
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import argosy


def point(sample):
    """What the model takes: 32 numbers, the class, and the sample's name to show which samples a step read."""
    values = torch.frombuffer(bytearray(sample["f32"]), dtype=torch.float32)
    return values, int(sample["cls"]), int(sample["__key__"].replace("/", ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="", help="folder of archives; a run of argosy knows it")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    parallel = DistributedDataParallel(model) if dist.is_initialized() else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    uri = Path(args.data).resolve().as_uri() if args.data else ""
    data = argosy.StreamingDataset(uri, argosy.ArchiveSamples(), match="*.tar", decode=point)
    loader = argosy.ResumableLoader(data, global_batch_size=64, epochs=args.epochs, seed=1)

    # Neither dataset nor loader is part of it: the step says which samples come next.
    checkpointer = argosy.Checkpointer("checkpoints", every=10)
    begin = 1
    if restored := checkpointer.restore():
        begin = restored.step + 1
        model.load_state_dict(restored.state["model"])
        optimizer.load_state_dict(restored.state["optimizer"])

    for step, (points, labels, names) in loader.batches(begin):
        loss = nn.functional.cross_entropy(parallel(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = step == loader.last_step
        read = hashlib.sha256(str(names.tolist()).encode()).hexdigest()[:12]
        print(f"rank {loader.rank} step {step} samples {read} loss {loss.item():.6f}", flush=True)
        argosy.report(step, loss=loss.item(), end_step=loader.last_step)
        if checkpointer.due(step) or last:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            checkpointer.save(step, state, final=last)

    print(f"rank {loader.rank} {data.statistics}", flush=True)
    data.close()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
