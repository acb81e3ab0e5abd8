"""A loop with Accelerate as people write it: save_state into step_N/, its path to go on, a bar over all steps.

accelerate launch train.py --checkpointing_steps 20
accelerate launch train.py --checkpointing_steps 20 --resume_from_checkpoint out/step_60
"""

import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--num_train_epochs", type=int, default=4)
    parser.add_argument("--checkpointing_steps", type=int, default=20)
    parser.add_argument("--resume_from_checkpoint", default=None)
    return parser.parse_args()


def get_dataloader(size=20480):
    points = torch.randn(size, 64, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(points, points[:, :10].argmax(dim=1)), batch_size=256, shuffle=True)


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    set_seed(42)
    width = 1024
    model = torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
        torch.nn.Linear(width, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 100))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, get_dataloader(), scheduler)

    overall_step, starting_epoch, resume_step = 0, 0, 0
    if args.resume_from_checkpoint:
        accelerator.print(f"Resumed from checkpoint: {args.resume_from_checkpoint}")
        accelerator.load_state(args.resume_from_checkpoint)
        overall_step = int(os.path.basename(args.resume_from_checkpoint).replace("step_", ""))
        starting_epoch, resume_step = divmod(overall_step, len(loader))
    progress_bar = tqdm(
        range(args.num_train_epochs * len(loader)), initial=overall_step, disable=not accelerator.is_local_main_process
    )
    for epoch in range(starting_epoch, args.num_train_epochs):
        model.train()
        loader.set_epoch(epoch)
        resumed = epoch == starting_epoch and resume_step
        batches = accelerator.skip_first_batches(loader, resume_step) if resumed else loader
        for batch, (points, labels) in enumerate(batches, start=resume_step if resumed else 0):
            loss = torch.nn.functional.cross_entropy(model(points), labels)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            overall_step += 1
            accelerator.print(f"epoch {epoch} batch {batch}/{len(loader)}: loss {loss.item():.6f}")
            if overall_step % args.checkpointing_steps == 0:
                accelerator.save_state(os.path.join(args.output_dir, f"step_{overall_step}"))
    accelerator.wait_for_everyone()
    accelerator.save_model(model, args.output_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
