"""A small regression with Ray Train, as people write it for a Ray cluster; it has never heard of argosy.

python train.py --epochs 20
"""

import argparse
import os
import tempfile

import ray.train
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model


def save(model, optimizer, epoch, folder):
    model = getattr(model, "module", model)  # of one worker it is not wrapped
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, os.path.join(folder, "state.pt"))
    return Checkpoint.from_directory(folder)


def train(config):
    torch.manual_seed(0)
    rank = ray.train.get_context().get_world_rank()
    model = prepare_model(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    wanted, first = torch.arange(8.0).unsqueeze(1), 0
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "state.pt"))
        getattr(model, "module", model).load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
        print(f"worker {rank} goes on after epoch {first}", flush=True)
    for epoch in range(first + 1, config["epochs"] + 1):
        generator = torch.Generator().manual_seed(1000 * epoch + rank)
        for _ in range(config["batches"]):
            points = torch.randn(64, 8, generator=generator)
            loss = torch.nn.functional.mse_loss(model(points), points @ wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} step {epoch * config['batches']} loss {loss.item():.6f}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            saved = save(model, optimizer, epoch, folder) if rank == 0 else None
            ray.train.report({"loss": loss.item()}, checkpoint=saved)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    TorchTrainer(
        train,
        train_loop_config={"epochs": args.epochs, "batches": args.batches},
        scaling_config=ScalingConfig(num_workers=args.workers),
        # By this name and folder Ray finds its checkpoints again.
        run_config=RunConfig(name="run", storage_path=os.path.abspath("out")),
    ).fit()
