"""A GPT of 1.5 billion parameters with the example's own model and loss, in bf16: tokens/s, MFU, memory, with saves.

Figures are said as they come, so that what fails late loses nothing. FLOPs per token are 6 per parameter and
12 x layers x width x context for attention, against the chip's dense bf16 peak by its data sheet.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.gpu.case import Case, Part
from tests.gpu.link import need_memory, settle

ROOT = Path(__file__).resolve().parents[2]
PEAK = {"H200": 989.4e12, "H100": 989.4e12, "A100": 312e12}
EVERY = 100


def trained(case: Case, batch: int) -> None:
    import torch

    sys.path.insert(0, str(ROOT / "examples" / "stdlib-gpt"))
    from model import GPT, Shape, next_byte_loss

    torch.manual_seed(1)
    shape = Shape(**case.pick({"context": 2048, "layers": 30, "heads": 16, "width": 2048},
                              {"context": 16, "layers": 2, "heads": 2, "width": 16}))  # fmt: skip
    with torch.device(case.device):
        gpt = GPT(shape)
    case.figure("parameters", gpt.parameter_count() / 1e9, "billion")
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=case.cuda)
    torch.set_float32_matmul_precision("high")
    model: Any = torch.compile(gpt) if case.cuda else gpt
    tokens = torch.randint(256, (batch, shape.context + 1), device=case.device)

    def loss() -> Any:
        with torch.autocast(case.device, torch.bfloat16):
            return next_byte_loss(model(tokens[:, :-1]), tokens[:, 1:])

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        torch.nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        step()
        settle(case)
        case.say("warm-up")
    plain = timed(case, step, case.pick(20, 3), "training")
    flops = 6 * gpt.parameter_count() + 12 * shape.layers * shape.width * shape.context
    told(case, "", batch * shape.context / plain, flops)
    state = {"model": gpt.state_dict(), "optimizer": optimizer.state_dict()}
    need_memory(case, 3 * sum(each.nbytes for each in gpt.parameters()) + case.pick(6 << 30, 0))
    with_saves(case, step, state, plain, batch * shape.context, flops)
    evaluated(case, gpt, loss, batch * shape.context)


def told(case: Case, what: str, speed: float, flops: int) -> None:
    import torch

    case.figure(f"tokens/s{what}", speed, "1/s")
    peak = next((peak for name, peak in PEAK.items() if case.cuda and name in torch.cuda.get_device_name()), 0.0)
    if peak:
        mfu = 100 * speed * flops / peak
        case.figure(f"MFU{what}", mfu, "%", bar=">= 45", held=mfu >= 45)
    if case.cuda:
        case.figure(f"peak memory{what}", torch.cuda.max_memory_allocated() / 1e9, "GB")


def timed(case: Case, step: Callable[[], None], count: int, what: str) -> float:
    """Median seconds of a step; each is waited for."""
    seconds = []
    for number in range(count):
        began = time.perf_counter()
        step()
        settle(case)
        seconds.append(time.perf_counter() - began)
        if number % 20 == 19:
            case.say(f"{what}: {number + 1} of {count}, {1000 * statistics.median(seconds):.0f} ms per step")
        if case.left < 60:
            break
    return statistics.median(seconds)


def with_saves(
    case: Case, step: Callable[[], None], state: dict[str, Any], plain: float, tokens: int, flops: int
) -> None:
    """One whole interval: a save, the steps while it is stored, and the others; beside steps without."""
    from argosy import Checkpointer

    checkpointer = Checkpointer(case.folder / "store", keep=1)
    checkpointer.prepare(state)
    case.say("prepared")
    began, stored, count = time.perf_counter(), 0.0, case.pick(EVERY, 4)
    saving = checkpointer.save(1, state)
    stall = time.perf_counter() - began
    for number in range(count):
        step()
        settle(case)
        if not stored and saving.done():
            stored = time.perf_counter() - began
        if case.left < 45:
            count = number + 1
            break
    whole = time.perf_counter() - began
    saving.wait()
    checkpointer.close()
    case.figure("size of a save", saving.bytes / 1e9, "GB")
    case.figure("stall of a save", stall, "s")
    case.figure("stored while training went on, after", stored or time.perf_counter() - began, "s")
    case.figure(f"steps between saves, measured over {count}", whole / count / plain, "x of a step without")
    told(case, f" with a save every {count} steps", count * tokens / whole, flops)


def evaluated(case: Case, gpt: Any, loss: Callable[[], Any], tokens: int) -> None:
    import torch

    gpt.eval()

    def forward() -> None:
        with torch.inference_mode():
            loss().item()

    forward()
    case.figure("evaluation: tokens/s", tokens / timed(case, forward, case.pick(10, 2), "evaluation"), "1/s")


def largest_that_fits(case: Case) -> None:
    """The batch is halved until it fits."""
    import torch

    batch = case.pick(16 if case.cuda and torch.cuda.get_device_properties(0).total_memory > 100e9 else 8, 2)
    while True:
        try:
            return trained(case, batch)
        except torch.OutOfMemoryError as error:
            if batch == 1:
                raise
            said = str(error).splitlines()[0]
        batch //= 2
        case.say(f"out of memory ({said}); batch {batch}")
        gc.collect()
        torch._dynamo.reset()
        torch.cuda.empty_cache()


PART = Part({"1.5B": largest_that_fits}, seconds=300, disk=frozenset({"1.5B"}))
