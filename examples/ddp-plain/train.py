"""An ordinary DDP script, as people write them; it has never heard of argosy.

torchrun --nproc-per-node 2 train.py --epochs 3 --out out
torchrun --nproc-per-node 2 train.py --epochs 3 --out out --resume
"""

import argparse
import gc
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_dataset(size=8192, features=64, classes=10):
    """Points labelled by a fixed random network: there is something to learn."""
    generator = torch.Generator().manual_seed(0)
    teacher = nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Linear(32, classes))
    for weight in teacher.parameters():
        weight.data = torch.randn(weight.shape, generator=generator)
    points = torch.randn(size, features, generator=generator)
    with torch.no_grad():
        return TensorDataset(points, teacher(points).argmax(dim=1))


def save(path, model, optimizer, epoch, step):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "step": step}
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--save-every", type=int, default=20)
    parser.add_argument("--out", default="out")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    rank = dist.get_rank()
    if use_cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 10)
    )
    if use_cuda:
        model = model.cuda()
    model = DDP(model, device_ids=[torch.cuda.current_device()] if use_cuda else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()

    dataset = make_dataset()
    sampler = DistributedSampler(dataset, seed=0)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)

    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "ckpt.pt")
    first_epoch, step = 0, 0
    if args.resume:
        checkpoint = torch.load(path, map_location="cuda" if use_cuda else "cpu")
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first_epoch, step = checkpoint["epoch"], checkpoint["step"]
        if rank == 0:
            print(f"resumed from step {step}", flush=True)

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        done = step - epoch * len(loader)  # batches of this epoch that were trained before the restart
        for batch, (points, labels) in enumerate(loader):
            if batch < done:
                continue
            if use_cuda:
                points, labels = points.cuda(), labels.cuda()
            loss = criterion(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if rank == 0 and step % args.save_every == 0:
                save(path, model, optimizer, epoch, step)
    if rank == 0:
        save(path, model, optimizer, args.epochs, step)
        print(f"finished at step {step}", flush=True)
    # DDP refers to itself and so keeps the group: gloo's threads abort an interpreter that ends before they do
    # (https://github.com/pytorch/pytorch/issues/190489).
    del model
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
