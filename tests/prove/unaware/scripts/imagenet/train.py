"""In the style of PyTorch's ImageNet example: epochs, meters, checkpoint.pth.tar and its copy beside the code.

torchrun --nproc-per-node 2 train.py
torchrun --nproc-per-node 2 train.py --resume checkpoint.pth.tar
"""

import argparse
import os
import shutil
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="PyTorch training")
parser.add_argument("--epochs", default=30, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", default=0.02, type=float)
parser.add_argument("-p", "--print-freq", default=1, type=int)
parser.add_argument("--resume", default="", type=str, metavar="PATH", help="path to latest checkpoint (default: none)")


class AverageMeter:
    def __init__(self, name, fmt):
        self.name, self.fmt, self.val, self.sum, self.count = name, fmt, 0.0, 0.0, 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n

    def __str__(self):
        return f"{self.name} {format(self.val, self.fmt)} ({format(self.sum / self.count, self.fmt)})"


def display(prefix, batch, batches, meters):
    width = len(str(batches))
    print("\t".join([f"{prefix}[{batch:{width}d}/{batches}]", *map(str, meters)]))


def make_dataset(size, seed):
    points = torch.randn(size, 64, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(points, points[:, :10].argmax(dim=1))


def train(loader, model, criterion, optimizer, epoch, args, main_process):
    took, losses, began = AverageMeter("Time", "6.3f"), AverageMeter("Loss", ".4e"), time.time()
    model.train()
    for i, (points, labels) in enumerate(loader):
        loss = criterion(model(points), labels)
        losses.update(loss.item(), len(points))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        took.update(time.time() - began)
        began = time.time()
        if main_process and i % args.print_freq == 0:
            display(f"Epoch: [{epoch}]", i + 1, len(loader), [took, losses])


def validate(loader, model, criterion, main_process):
    losses, top1 = AverageMeter("Loss", ".4e"), AverageMeter("Acc@1", "6.2f")
    model.eval()
    with torch.no_grad():
        for i, (points, labels) in enumerate(loader):
            output = model(points)
            losses.update(criterion(output, labels).item(), len(points))
            top1.update(100 * (output.argmax(dim=1) == labels).float().mean().item(), len(points))
            if main_process:
                display("Test: ", i + 1, len(loader), [losses, top1])
    if main_process:
        print(f" *   Acc@1 {top1.sum / top1.count:.3f}")
    return top1.sum / top1.count


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


def main():
    args = parser.parse_args()
    distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if distributed:
        dist.init_process_group("gloo")
    main_process = not distributed or dist.get_rank() == 0
    torch.manual_seed(0)
    width = 1024
    model = torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
        torch.nn.Linear(width, 10),
    )  # fmt: skip
    if distributed:
        model = DistributedDataParallel(model)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    start_epoch, best_acc1 = 0, 0
    if args.resume:
        if os.path.isfile(args.resume):
            print(f"=> loading checkpoint '{args.resume}'")
            checkpoint = torch.load(args.resume)
            start_epoch, best_acc1 = checkpoint["epoch"], checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
            print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})")
        else:
            print(f"=> no checkpoint found at '{args.resume}'")

    train_set = make_dataset(2560, seed=1)
    sampler = DistributedSampler(train_set) if distributed else DistributedSampler(train_set, 1, 0)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    val_loader = DataLoader(make_dataset(512, seed=2), batch_size=args.batch_size)
    for epoch in range(start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args, main_process)
        acc1 = validate(val_loader, model, criterion, main_process)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if main_process:
            state = {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }
            save_checkpoint(state, is_best)
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
