"""What a rank of a managed run does: ``python -m tests.gpu.ranks WHAT``; settings come in GPU_… variables."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

import argosy

DEVICE = os.environ.get("GPU_DEVICE", "cpu")


def noted(what: str, path: str) -> None:
    with Path(path).open("a") as target:
        target.write(f"{what} {time.time()}\n")


def killed() -> None:
    """Ten steps with a checkpoint, then SIGKILL by its own hand, so often; the last time it ends well."""
    times, kills = os.environ["GPU_TIMES"], int(os.environ["GPU_KILLS"])
    weights = torch.zeros(64, 64, device=DEVICE)
    checkpointer = argosy.Checkpointer(Path(times).with_name("checkpoints"))
    found = checkpointer.restore(into={"weights": weights})
    begin = found.step if found is not None else 0
    end = begin + 10
    done = Path(times).read_text().count("killed") if Path(times).exists() else 0
    for step in range(begin + 1, end + 1):
        weights = weights + 1
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        if step == begin + 1:
            noted("first", times)
        argosy.report(step, loss=1.0)
    checkpointer.save(end, {"weights": weights}, final=done == kills).wait()
    if done < kills:
        noted("killed", times)
        os.kill(os.getpid(), signal.SIGKILL)


def steps() -> None:
    """Steps of a fixed size; their median. GPU_SPEAKS: with argosy's calls after each."""
    speaks, count = bool(os.environ.get("GPU_SPEAKS")), int(os.environ["GPU_STEPS"])
    width = 8192 if DEVICE == "cuda" else 256
    dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
    weights = torch.randn(width, width, device=DEVICE, dtype=dtype)
    checkpointer = argosy.Checkpointer(os.environ["GPU_FOLDER"], every=10**9) if speaks else None
    seconds, calls = [], []
    for step in range(1, count + 1):
        began = time.perf_counter()
        for _ in range(30 if DEVICE == "cuda" else 5):  # about 50 ms of an H200
            weights = torch.tanh(weights @ weights)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        called = time.perf_counter()
        if checkpointer is not None:
            argosy.report(step, loss=1.0, tokens=1000, end_step=count)
            checkpointer.due(step)
        ended = time.perf_counter()
        seconds.append(ended - began)
        calls.append(ended - called)
    if checkpointer is not None:
        checkpointer.save(count, {"weights": weights[:2].float()}, final=True)
        checkpointer.close()
    with Path(os.environ["GPU_TIMES"]).open("a") as target:
        target.write(f"{statistics.median(seconds[count // 10 :])} {statistics.median(calls[count // 10 :])}\n")


def oom() -> None:
    if DEVICE == "cuda":
        held = [torch.empty(8 << 30, dtype=torch.uint8, device=DEVICE) for _ in range(1000)]
        raise SystemExit(f"{len(held)} times 8 GiB fit")
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 1 GiB")


def device_assert() -> None:
    if DEVICE == "cuda":
        torch.nn.functional.cross_entropy(torch.zeros(4, 3, device=DEVICE), torch.tensor([0, 1, 7, 2], device=DEVICE))
        torch.cuda.synchronize()
        raise SystemExit("the assert did not fire")
    raise RuntimeError("CUDA error: device-side assert triggered")


def illegal_address() -> None:
    if DEVICE == "cuda":
        from tests.gpu.stray_kernel import write_far_away

        write_far_away(torch.zeros(1024, device=DEVICE))
        torch.cuda.synchronize()
        raise SystemExit("nothing forbade the address")
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def aborted() -> None:
    """The communicator is aborted from within, as a watchdog does, and used again."""
    dist = torch.distributed
    dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    if DEVICE == "cuda":
        given = torch.ones(4, device=DEVICE)
        dist.all_reduce(given)
        dist.distributed_c10d._get_default_group()._get_backend(torch.device(DEVICE)).abort()
        dist.all_reduce(given)
        torch.cuda.synchronize()
        raise SystemExit("the aborted communicator went on")
    raise dist.DistBackendError("NCCL communicator was aborted on rank 0.")


def peer_killed() -> None:
    """Two ranks on one GPU; the second is killed in the midst of collectives."""
    dist = torch.distributed
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    given = torch.ones(1 << 20, device=DEVICE)
    for step in range(1, 200):
        dist.all_reduce(given)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        argosy.report(step, loss=1.0)
        if step == 20 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def not_deterministic() -> None:
    """Exact mode meets an operation that has no deterministic kernel."""
    model = torch.nn.Linear(8, 8).to(DEVICE)
    loader = argosy.ResumableLoader(torch.zeros(64, 8), global_batch_size=8, seed=1, virtual_shards=2)
    exact = argosy.ExactDataParallel(model, loader)

    def loss(batch: Any) -> Any:
        found = model(batch.to(DEVICE))
        if DEVICE == "cuda":
            grown = torch.nn.functional.adaptive_avg_pool2d(found[:, None, None, :].expand(-1, 1, 8, 8), (3, 3))
            return grown.square().mean()
        index = torch.zeros(4, dtype=torch.long)
        return found.flatten().put_(index, torch.ones(4)).square().mean()

    for step, shards in loader.shards(1):
        exact.backward(step, shards, loss)
        raise SystemExit("nothing refused it")


FAULTS = {
    "oom": oom, "device_assert": device_assert, "illegal_address": illegal_address, "aborted": aborted,
    "peer_killed": peer_killed, "not_deterministic": not_deterministic,
}  # fmt: skip

if __name__ == "__main__":
    {"killed": killed, "steps": steps, **FAULTS}[sys.argv[1]]()
