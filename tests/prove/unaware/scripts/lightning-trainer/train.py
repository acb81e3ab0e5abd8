"""A Lightning Trainer as people write it: ModelCheckpoint, and ckpt_path to go on.

python train.py --devices 2
python train.py --devices 2 --ckpt_path checkpoints/epoch=9-step=200.ckpt
"""

import argparse
import os

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self, width=512):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        )  # fmt: skip

    def training_step(self, batch, batch_idx):
        points, labels = batch
        loss = torch.nn.functional.cross_entropy(self.net(points), labels)
        self.log("train_loss", loss, prog_bar=True)
        if self.global_rank == 0:
            print(f"step {self.global_step + 1} loss {loss.item():.6f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def make_dataset(size=10240):
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(size, 64, generator=generator)
    return TensorDataset(points, points[:, :10].argmax(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=20)
    parser.add_argument("--devices", type=int, default=int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    parser.add_argument("--num_nodes", type=int, default=int(os.environ.get("GROUP_WORLD_SIZE", "1")))
    parser.add_argument("--ckpt_path")
    args = parser.parse_args()

    L.seed_everything(0, workers=True)
    trainer = L.Trainer(
        accelerator="auto",
        devices=args.devices,
        num_nodes=args.num_nodes,
        strategy="ddp" if args.devices * args.num_nodes > 1 else "auto",
        max_epochs=args.max_epochs,
        callbacks=[ModelCheckpoint(dirpath="checkpoints", save_last=True)],
        enable_progress_bar=False,
        logger=False,
    )
    loader = DataLoader(make_dataset(), batch_size=256, shuffle=True)
    model = Classifier()
    trainer.fit(model, loader, ckpt_path=args.ckpt_path)
    if trainer.is_global_zero:
        torch.save(model.net.state_dict(), "checkpoints/model.pt")


if __name__ == "__main__":
    main()
