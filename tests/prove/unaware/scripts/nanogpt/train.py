"""A script in the style of nanoGPT: globals, one ckpt.pt that is overwritten in place, --init_from=resume.

python train.py
torchrun --nproc-per-node 2 train.py --init_from=resume
"""

import ast
import os
import sys

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

out_dir = "out"
init_from = "scratch"  # 'scratch' or 'resume'
max_iters = 400
eval_interval = 20
vocab_size, block_size, batch_size, n_embd = 8192, 32, 8, 64
learning_rate = 1e-3
for arg in sys.argv[1:]:  # --key=value, as in configurator.py
    key, _, value = arg.removeprefix("--").partition("=")
    globals()[key] = type(globals()[key])(ast.literal_eval(value)) if value.isdigit() else value

ddp = int(os.environ.get("WORLD_SIZE", "1")) > 1
rank = int(os.environ.get("RANK", "0"))
if ddp:
    init_process_group(backend="gloo")
master_process = rank == 0
if master_process:
    os.makedirs(out_dir, exist_ok=True)
torch.manual_seed(1337)


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(vocab_size, n_embd)
        self.block = torch.nn.TransformerEncoderLayer(n_embd, 2, 4 * n_embd, dropout=0.0, batch_first=True)
        self.lm_head = torch.nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(idx.shape[1])
        logits = self.lm_head(self.block(self.wte(idx), src_mask=mask, is_causal=True))
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(iter_num):
    generator = torch.Generator().manual_seed(1000 * (iter_num + 1) + rank)
    start = torch.randint(vocab_size, (batch_size, 1), generator=generator)
    data = (start + 7 * torch.arange(block_size + 1)) % vocab_size
    return data[:, :-1], data[:, 1:]


iter_num = 0
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95))
if init_from == "resume":
    checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    iter_num = checkpoint["iter_num"]
raw_model = model
if ddp:
    model = DDP(model)

while True:
    if iter_num % eval_interval == 0 and iter_num > 0 and master_process:
        with torch.no_grad():
            print(f"step {iter_num}: val loss {raw_model(*get_batch(-1)).item():.6f}")
        checkpoint = {"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iter_num}
        torch.save(checkpoint, os.path.join(out_dir, "ckpt.pt"))
    if iter_num >= max_iters:
        break
    X, Y = get_batch(iter_num)
    loss = model(X, Y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if master_process:
        print(f"iter {iter_num}: loss {loss.item():.6f}")
    iter_num += 1

if ddp:
    destroy_process_group()
