"""Train the byte-level GPT with DistributedDataParallel.

    argosy run run.toml                                              # two nodes, restarts, evaluation, gate
    torchrun --nproc-per-node 2 train.py --data DIR --steps 200      # plainly; DIR holds the *.bin of prepare.py

A run that is stopped at any instant and started again ends with the very same bits: what is saved is the model,
the optimizer and the step; which bytes a rank reads and the learning rate follow from the step; one thread per
rank keeps the order of additions.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

import torch
import torch.distributed as dist
from corpus import Corpus
from model import GPT, Shape, next_byte_loss
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import argosy


def parse() -> argparse.Namespace:
    """The command line. Under argosy the data's folder and the batch arithmetic come from the environment."""
    of = os.environ.get
    parser = argparse.ArgumentParser(description="Train a byte-level GPT.")
    parser.add_argument("--data", type=Path, default=of("ARGOSY_DATA_PATH", "data"), help="folder with *.bin")
    parser.add_argument("--steps", type=int, default=150, help="optimizer steps of the whole training")
    parser.add_argument("--batch", type=int, default=of("ARGOSY_MICRO_BATCH_SIZE", 8), help="windows per rank, step")
    parser.add_argument("--lr", type=float, default=of("ARGOSY_LEARNING_RATE") or 3e-3, help="peak learning rate")
    parser.add_argument("--warmup", type=int, default=20, help="steps of rising learning rate")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and of the order of the data")
    parser.add_argument("--checkpoints", type=Path, default="checkpoints", help="folder; argosy has a store instead")
    parser.add_argument("--checkpoint-every", type=int, default=50, help="steps; argosy's own setting wins")
    parser.add_argument("--log-every", type=int, default=10, help="steps between lines of output")
    return parser.parse_args()


def join() -> tuple[int, int, torch.device]:
    """Join the process group that torchrun describes: (rank, world size, device). Alone without torchrun."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if cuda else "gloo")
    return rank, world, device


def learning_rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Up in a line for ``warmup`` steps, then down along a cosine to a twentieth of the peak."""
    if step <= warmup:
        return peak * step / warmup
    down = (step - warmup) / max(1, steps - warmup)
    return peak * (0.05 + 0.95 * (1 + math.cos(math.pi * down)) / 2)


def mean_over_ranks(value: Tensor, world: int) -> float:
    """The mean of one number over all ranks."""
    if world > 1:
        dist.all_reduce(value)
    return value.item() / world


def main() -> None:
    """Restore, train, save."""
    args = parse()
    rank, world, device = join()
    torch.manual_seed(args.seed)

    # ---- model, optimizer, data
    gpt = GPT(Shape()).to(device)
    model = (
        DistributedDataParallel(gpt, device_ids=[device.index] if device.index is not None else None)
        if world > 1
        else gpt
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1)
    corpus = Corpus(args.data, gpt.shape.context)

    # ---- go on where the last checkpoint ended
    checkpointer = argosy.Checkpointer(args.checkpoints, every=args.checkpoint_every)
    restored = checkpointer.restore()
    begin = 1
    if restored is not None:
        gpt.load_state_dict(restored.state["model"])
        optimizer.load_state_dict(restored.state["optimizer"])
        begin = restored.step + 1
    if rank == 0:
        print(
            f"{gpt.parameter_count() / 1e6:.2f}M parameters, {len(corpus.stream) / 1e6:.1f} MB, from step {begin}",
            flush=True,
        )

    # ---- train
    for step in range(begin, args.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.warmup, args.lr)
        inputs, targets = (part.to(device) for part in corpus.batch(args.seed, step, rank, world, args.batch))
        loss = next_byte_loss(model(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()

        shown = mean_over_ranks(loss.detach(), world)
        argosy.report(step, loss=shown, tokens=inputs.numel(), end_step=args.steps)
        if rank == 0 and (step % args.log_every == 0 or step == args.steps):
            print(f"step {step} loss {shown:.4f}", flush=True)
        state = {"model": gpt.state_dict(), "optimizer": optimizer.state_dict()}
        if step == begin:
            checkpointer.prepare(state)  # now the optimizer has its moments: the first save costs what later ones do
        if checkpointer.due(step) or step == args.steps:
            checkpointer.save(step, state, final=step == args.steps)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
