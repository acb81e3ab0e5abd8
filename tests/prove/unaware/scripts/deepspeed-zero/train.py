"""A DeepSpeed script as people write it: initialize, save_checkpoint (global_stepN/ and latest), load_checkpoint.

torchrun --nproc-per-node 2 train.py --stage 3
torchrun --nproc-per-node 2 train.py --stage 3 --resume
"""

import argparse

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--stage", type=int, default=1)
parser.add_argument("--steps", type=int, default=240)
parser.add_argument("--save_interval", type=int, default=20)
parser.add_argument("--save_dir", default="checkpoints")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()

deepspeed.init_distributed()
rank = torch.distributed.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
)
config = {
    "train_micro_batch_size_per_gpu": 512,
    "zero_optimization": {"stage": args.stage},
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
if args.resume:
    path, _ = engine.load_checkpoint(args.save_dir)
    if path is None:
        raise SystemExit(f"nothing to resume from in {args.save_dir}")

while engine.global_steps < args.steps:
    step = engine.global_steps + 1
    points = torch.randn(512, 64, generator=torch.Generator().manual_seed(1000 * step + rank))
    labels = points[:, :10].argmax(dim=1)
    logits = engine(points.to(engine.device, torch.bfloat16))
    loss = torch.nn.functional.cross_entropy(logits.float(), labels.to(engine.device))
    engine.backward(loss)
    engine.step()
    if rank == 0:
        print(f"step {step} loss {loss.item():.6f}")
    if step % args.save_interval == 0:
        engine.save_checkpoint(args.save_dir)
torch.distributed.destroy_process_group()
