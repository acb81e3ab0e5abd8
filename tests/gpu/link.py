"""The limits that figures are held against: the link between device and host memory, and memory itself."""

from __future__ import annotations

import mmap
import statistics
import time
from typing import Any

from argosy.steps.evidence.memory import available_bytes
from tests.gpu.case import Case, Skipped


def settle(case: Case) -> None:
    """Wait for the device."""
    import torch

    if case.cuda:
        torch.cuda.synchronize()


def d2h_bytes_per_second(case: Case, size: int, *, pinned: bool, rounds: int = 7) -> float:
    """Median speed of one copy of ``size`` bytes from the device to host memory that is there already."""
    import torch

    source = torch.randint(256, (size,), dtype=torch.uint8, device=case.device)
    into = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
    into.fill_(1)
    seconds = []
    for _ in range(rounds + 1):
        settle(case)
        began = time.perf_counter()
        into.copy_(source, non_blocking=True)
        settle(case)
        seconds.append(time.perf_counter() - began)
    assert torch.equal(into, source.cpu())
    return size / statistics.median(seconds[1:])


def memory_for(case: Case, size: int) -> int:
    """Bytes of host memory that can be had; a virtual machine may grow to ``size`` only as memory is touched."""
    best = available_bytes()
    for _ in range(20):
        if best >= size or case.left < 20:
            break
        touch = int(available_bytes() * 0.8)
        with mmap.mmap(-1, touch, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
            for at in range(0, touch, 1 << 30):
                held[at : at + (1 << 30) : mmap.PAGESIZE] = b"\1" * len(range(at, min(at + (1 << 30), touch), 4096))
        time.sleep(0.5)
        if available_bytes() <= best * 1.02:
            break
        best = available_bytes()
    return max(best, available_bytes())


def need_memory(case: Case, size: int) -> None:
    """Skipped where the host has less."""
    if (found := memory_for(case, size)) < size:
        raise Skipped(f"{size / 1e9:.0f} GB of host memory are needed, {found / 1e9:.0f} GB can be had")


def gpt_like(case: Case, width: int, layers: int) -> dict[str, Any]:
    """A state with the tensors of a GPT and fused AdamW: 12 bytes per parameter, random bits, on the device."""
    import torch

    def filled(*shape: int) -> Any:
        return torch.randn(shape, device=case.device)

    shapes = {
        "norm_attention.weight": (width,), "norm_attention.bias": (width,), "attention.ask": (3 * width, width),
        "attention.answer": (width, width), "norm_mlp.weight": (width,), "norm_mlp.bias": (width,),
        "mlp.0": (4 * width, width), "mlp.2": (width, 4 * width),
    }  # fmt: skip
    model = {f"blocks.{n}.{name}": filled(*shape) for n in range(layers) for name, shape in shapes.items()}
    moments = {
        number: {"step": filled(1)[0], "exp_avg": filled(*weight.shape), "exp_avg_sq": filled(*weight.shape)}
        for number, weight in enumerate(model.values())
    }
    groups = [{"lr": 1e-3, "betas": (0.9, 0.95), "params": list(moments)}]
    return {"model": model, "optimizer": {"state": moments, "param_groups": groups}}
