"""The training that is killed: dropout, batch norm, random augmentation by three generators, AdamW, clipping, a
schedule. It says of every step what it read, the loss's bits and where its random generators stand."""

from __future__ import annotations

import hashlib
import json
import os
import random
from typing import Any

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from argosy import Checkpointer, ExactDataParallel, ResumableLoader

FEATURES, CLASSES = 24, 6


class Points:
    """``samples`` points, each with its own number as third value; noise by all three generators."""

    def __init__(self, samples: int) -> None:
        draw = numpy.random.default_rng(7)
        self._points = draw.standard_normal((samples, FEATURES), dtype=numpy.float32)

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, number: int) -> tuple[Tensor, int, int]:
        noise = random.gauss(0, 0.1) + 0.1 * numpy.random.standard_normal() + 0.1 * torch.randn(FEATURES)
        return torch.from_numpy(self._points[number]) + noise, int(self._points[number].argmax()) % CLASSES, number


def parts(seed: int, samples: int, global_batch: int, shards: int) -> tuple[nn.Module, Any, Any, ResumableLoader]:
    """Model, optimizer, schedule and loader; the same on every rank."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(FEATURES, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 32), nn.Tanh(),
        nn.Linear(32, CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 40)
    loader = ResumableLoader(Points(samples), global_batch_size=global_batch, seed=seed, virtual_shards=shards)
    return model, optimizer, schedule, loader


def train(spoken: str, recipe: dict[str, int], end: int) -> None:
    """Up to step ``end``, from the checkpoint that the environment names; lines go to ``spoken-RANK.lines``."""
    model, optimizer, schedule, loader = parts(**recipe)
    exact = ExactDataParallel(model, loader, bucket_megabytes=0.005)
    checkpointer = Checkpointer()
    begin, restored = 1, checkpointer.restore()
    if restored is not None:
        begin = restored.step + 1
        for name, each in (("model", model), ("optimizer", optimizer), ("schedule", schedule), ("exact", exact)):
            each.load_state_dict(restored.state[name])  # type: ignore[attr-defined]
    lines = os.open(f"{spoken}-{loader.rank}.lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for step, shards in loader.shards(begin):
        loss = exact.backward(step, shards, lambda batch: F.cross_entropy(model(batch[0]), batch[1]))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        read = [number for shard in shards for number in shard.batch[2].tolist()]
        line = {"step": step, "loss": loss.hex(), "samples": read, "random": generators_now()}
        os.write(lines, (json.dumps(line) + "\n").encode())
        if checkpointer.due(step) or step == end:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                     "schedule": schedule.state_dict(), "exact": exact.state_dict()}  # fmt: skip
            checkpointer.save(step, state, final=step == end)
        if step == end:
            return


def generators_now() -> str:
    """SHA-256 of the state of Python's, NumPy's and torch's generators."""
    name, keys, position, has_gauss, cached = numpy.random.get_state(legacy=True)
    found = hashlib.sha256(repr((random.getstate(), name, position, has_gauss, cached)).encode())
    found.update(numpy.ascontiguousarray(keys).tobytes())
    found.update(torch.get_rng_state().numpy().tobytes())
    return found.hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a nested state: names, numbers to the bit, tensors' bytes."""
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, dict):
        for key in sorted(value, key=repr):
            found.update(repr(key).encode())
            _feed(found, value[key])
    elif isinstance(value, list | tuple):
        found.update(f"[{len(value)}".encode())
        for each in value:
            _feed(found, each)
    elif isinstance(value, Tensor):
        found.update(f"{value.dtype}{tuple(value.shape)}".encode() + value.contiguous().numpy().tobytes())
    else:
        found.update(repr(value).encode())
