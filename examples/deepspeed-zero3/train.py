"""ZeRO-3 with offload as DeepSpeed's guides configure it; it has never heard of argosy.

torchrun --nproc-per-node 2 train.py --steps 60
torchrun --nproc-per-node 2 train.py --steps 60 --resume
torchrun --nproc-per-node 1 train.py --steps 60 --resume --universal   # after ds_to_universal: another number of ranks
"""

import argparse
import json

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator


def read_config(path, bf16, torch_adam, universal):
    """The guides' file; what this machine cannot do is replaced, and each replacement printed."""
    with open(path) as source:
        config = json.load(source)
    if config["fp16"]["enabled"] and (bf16 or not get_accelerator().is_fp16_supported()):
        print(f"override: fp16 -> bf16 ({'asked for' if bf16 else 'this device has no fp16'})", flush=True)
        config["fp16"], config["bf16"] = {"enabled": False}, {"enabled": True}
    if torch_adam:
        print("override: DeepSpeedCPUAdam -> torch.optim.AdamW (asked for)", flush=True)
        config["optimizer"]["params"]["torch_adam"] = True
        config["zero_force_ds_cpu_optimizer"] = False
    if universal:
        config["checkpoint"] = {"load_universal": True}
    return config


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    """Predicts the next number of an arithmetic sequence from the last one and its predecessor."""

    def __init__(self, vocab=512, width=128, layers=4):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, width)
        self.blocks = torch.nn.Sequential(*(Block(width) for _ in range(layers)))
        self.head = torch.nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        before = torch.nn.functional.pad(tokens[:, :-1], (1, 0))
        return self.head(self.blocks(self.embed(tokens) + self.embed(before).roll(1, -1)))


def batch(step, rank, size, world, length=64, vocab=512):
    """The rank's rows of the step's batch, which is the same for any number of ranks and when resumed."""
    generator = torch.Generator().manual_seed(step)
    start, stride = (torch.randint(1, vocab, (size * world, 1), generator=generator) for _ in range(2))
    row = ((start + stride * torch.arange(length + 1)) % vocab)[rank * size : (rank + 1) * size]
    return row[:, :-1], row[:, 1:]


def mean(loss, world):
    """Over all ranks, so over the whole batch: another number of ranks should print the same."""
    total = loss.detach().clone()
    torch.distributed.all_reduce(total)
    return total.item() / world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="ds_config.json")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--save_every", type=int, default=10)
    parser.add_argument("--save_dir", default="checkpoints")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument(
        "--universal", action="store_true", help="resume from what ds_to_universal made of a checkpoint"
    )
    parser.add_argument("--torch_adam", action="store_true", help="not DeepSpeedCPUAdam: resumes to the last bit")
    parser.add_argument("--bf16", action="store_true")
    args = parser.parse_args()

    deepspeed.init_distributed()
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    config = read_config(args.config, args.bf16, args.torch_adam, args.universal)
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    if args.resume:
        path, _ = engine.load_checkpoint(args.save_dir)
        if path is None:
            raise SystemExit(f"nothing to resume from in {args.save_dir}")
        print(f"rank {rank} resumed from {path}", flush=True)

    while engine.global_steps < args.steps:
        step = engine.global_steps + 1
        size = engine.train_micro_batch_size_per_gpu()
        tokens, targets = (part.to(engine.device) for part in batch(step, rank, size, world))
        logits = engine(tokens)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        engine.backward(loss)
        engine.step()
        told = mean(loss, world)
        if rank == 0:
            print(f"step {step} loss {told:.6f}", flush=True)
        if step % args.save_every == 0:
            engine.save_checkpoint(args.save_dir)
    engine.save_16bit_model(args.save_dir)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
