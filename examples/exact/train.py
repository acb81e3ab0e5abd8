"""A training whose result is the same to the bit on 1, 2 or 4 ranks, killed or not.

argosy run run.toml --inject kill:rank=1@step=150        # two ranks, one killed
torchrun --nproc-per-node 4 train.py                     # plainly: checkpoints in ./checkpoints
"""

import hashlib
import os

import torch
import torch.distributed as dist
from torch import nn

import argosy


class Points(torch.utils.data.Dataset):
    """Points labelled by a fixed random network; each look at one adds noise, as an augmentation would."""

    def __init__(self, size=6000, features=64, classes=10):
        draw = torch.Generator().manual_seed(0)
        self.points = torch.randn(size, features, generator=draw)
        self.labels = (self.points @ torch.randn(features, classes, generator=draw)).argmax(dim=1)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, number):
        return self.points[number] + 0.1 * torch.randn(self.points.shape[1]), self.labels[number]


def main():
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    criterion = nn.CrossEntropyLoss()

    loader = argosy.ResumableLoader(Points(), global_batch_size=128, virtual_shards=8, epochs=6, seed=1)
    exact = argosy.ExactDataParallel(model, loader)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "exact": exact}

    checkpointer = argosy.Checkpointer("checkpoints", every=50)
    begin = 1
    if restored := checkpointer.restore():
        begin = restored.step + 1
        for name, part in parts.items():
            part.load_state_dict(restored.state[name])

    for step, shards in loader.shards(begin):
        loss = exact.backward(step, shards, lambda batch: criterion(model(batch[0]), batch[1]))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

        last = step == loader.last_step
        argosy.report(step, loss=loss, end_step=loader.last_step)
        if checkpointer.due(step) or last:
            checkpointer.save(step, {name: part.state_dict() for name, part in parts.items()}, final=last)

    if loader.rank == 0:
        weights = b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())
        print(f"step {loader.last_step} weights {hashlib.sha256(weights).hexdigest()}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
