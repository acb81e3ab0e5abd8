"""Exact mode on a GPU: killed 20 times, on one and two ranks in turns, and the bits of a run that nobody disturbed.

Two ranks share the GPU and talk over gloo, which NCCL would refuse to do. That an operation without a deterministic
kernel is refused is a case of ``faults``.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.gpu.case import Case, Part
from tests.gpu.forks import Fork, preload

KILLS = 20


def killed(case: Case) -> None:
    preload(case)
    kills = case.pick(KILLS, 2)
    chance = random.Random(20261122)
    done, worlds = 0, [0, 0]
    while done < kills and case.left > 60:
        world = chance.choice([1, 2])
        gang = started(case, "killed", world, 10**9, f"k{done}")
        # Most are killed while they train, between their first step and their seventh, some while they begin.
        if chance.random() < 0.8:
            gang[0].said(f"step {chance.randrange(1, 7)}", 90.0)
            time.sleep(chance.uniform(0, 0.1))
        else:
            time.sleep(chance.uniform(0, 0.6))
        for rank in gang:
            os.kill(rank.pid, signal.SIGKILL)
        for rank in gang:
            code = rank.wait()
            assert code == -9, f"ended with {code}: {log(case, 'killed')}"
        worlds[world - 1] += 1
        done += 1
        if done % 5 == 0:
            case.say(f"{done} kills")
    end = newest(case, "killed") + 2
    bits = finished(case, "killed", 2, end)
    case.say(f"{end} steps; now undisturbed")
    truth = finished(case, "truth", 1, end)
    case.figure("kills", done, bar=str(kills), held=done == kills)
    case.figure("of them on one and on two ranks", str(worlds))
    case.figure("steps", end, **({"bar": ">= 20", "held": end >= 20} if case.cuda else {}))
    case.figure("same bits as undisturbed", bits == truth, bar="True", held=bits == truth)


def started(case: Case, name: str, world: int, end: int, gang: str) -> list[Fork]:
    path = case.folder / f"{name}.log"
    return [Fork(lambda say, rank=rank: train(case, name, rank, world, end, gang, say), path) for rank in range(world)]  # type: ignore[misc]


def finished(case: Case, name: str, world: int, end: int) -> str:
    """Train up to step ``end``; SHA-256 of weights and optimizer."""
    for rank in started(case, name, world, end, f"{name}-{end}"):
        code = rank.wait()
        assert code == 0, f"ended with {code}: {log(case, name)}"
    return (case.folder / f"{name}-{end}.digest").read_text()


def newest(case: Case, name: str) -> int:
    from argosy.steps.checkpoint.store import CheckpointStore
    from argosy.steps.store import open_store

    found = CheckpointStore(open_store((case.folder / f"{name}-store").as_uri()), "").newest()
    return found.step if found is not None else 0


def log(case: Case, name: str) -> str:
    return (case.folder / f"{name}.log").read_text()[-2000:]


def train(case: Case, name: str, rank: int, world: int, end: int, gang: str, say: Callable[[str], None]) -> None:
    """A rank: attention in bf16, dropout, batch norm, AdamW."""
    import torch
    import torch.distributed as dist
    from torch import nn

    import argosy
    from tests.exact.training import digest

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "GLOO_SOCKET_IFNAME": "lo"}
    if world > 1:
        store = dist.FileStore(str(case.folder / f"{gang}.rendezvous"), world)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    torch.manual_seed(1)
    width, device = case.pick(256, 16), torch.device(case.device, 0) if case.cuda else torch.device("cpu")
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
    model = nn.Sequential(block, nn.Flatten(), nn.Linear(8 * width, width), nn.BatchNorm1d(width), nn.Linear(width, 1))
    model.to(device)
    points = torch.randn(512, 8, width, generator=torch.Generator().manual_seed(2))
    loader = argosy.ResumableLoader(points, global_batch_size=64, seed=3, virtual_shards=4)
    exact = argosy.ExactDataParallel(model, loader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpointer = argosy.Checkpointer(case.folder / f"{name}-store", every=3, keep=2)
    begin, restored = 1, checkpointer.restore()
    if restored is not None:
        begin = restored.step + 1
        for part, each in (("model", model), ("optimizer", optimizer), ("exact", exact)):
            each.load_state_dict(restored.state[part])  # type: ignore[attr-defined]

    def loss(batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            found: torch.Tensor = model(batch.to(device)).float().square().mean()
        return found

    for step, shards in loader.shards(begin):
        exact.backward(step, shards, loss)
        optimizer.step()
        say(f"step {step - begin + 1}")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "exact": exact.state_dict()}
        if checkpointer.due(step) or step == end:
            checkpointer.save(step, state, final=step == end)
        if step == end:
            if rank == 0:
                on_cpu = {part: _cpu(state[part]) for part in ("model", "optimizer")}
                Path(case.folder / f"{name}-{end}.digest").write_text(digest(on_cpu))
            break
    checkpointer.close()


def _cpu(value: object) -> object:
    import torch

    if isinstance(value, dict):
        return {key: _cpu(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cpu(each) for each in value]
    return value.cpu() if isinstance(value, torch.Tensor) else value


PART = Part({"20 kills": killed}, seconds=150, beside=frozenset({"20 kills"}))
