"""The contenders: each saves the same state; ``save`` is what training waits for, ``finish`` until it is durable."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from argosy import Checkpointer
from benchmarks.checkpoints.model import local_tensors


class Saver(Protocol):
    """One way of saving."""

    name: str

    def save(self, step: int) -> None:
        """What training waits for."""

    def finish(self) -> None:
        """Return when it is durable."""


class Floor:
    """Only the copy of this rank's bytes into memory that is there already: nobody can wait less. (CPU tensors.)"""

    name = "memcpy floor"

    def __init__(self, state: dict[str, Any], _: Path) -> None:
        self._sources = local_tensors(state)
        self._copies = [torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in self._sources]

    def save(self, step: int) -> None:
        for copy, source in zip(self._copies, self._sources, strict=True):
            copy.copy_(source)

    def finish(self) -> None:
        """Nothing is written."""


class Argosy:
    """Ours, asynchronous, prepared in warm-up as the documentation says."""

    name = "argosy"

    def __init__(self, state: dict[str, Any], folder: Path) -> None:
        self._state = state
        self._folder = folder / "argosy"
        self._checkpointer = Checkpointer(self._folder, keep=1)
        self._checkpointer.prepare(state)
        self._saving: Any = None

    def save(self, step: int) -> None:
        self._saving = self._checkpointer.save(step, self._state)

    def finish(self) -> None:
        self._saving.wait()


class PerRank:
    """``torch.save`` of this rank's state and fsync; ``hashed``: and the SHA-256 of the same bytes."""

    def __init__(self, state: dict[str, Any], folder: Path, *, hashed: bool = False) -> None:
        self.name = "torch.save per rank + fsync" + (" + SHA-256" if hashed else "")
        self._state = dict(enumerate(local_tensors(state)))
        self._folder = folder / f"per-rank-{hashed}"
        self._hashed = hashed

    def save(self, step: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"rank-{dist.get_rank()}.pt"
        with path.open("w+b") as target:
            torch.save(self._state, target)
            target.flush()
            os.fsync(target.fileno())
            if self._hashed:
                target.seek(0)
                hashlib.file_digest(target, "sha256")

    def finish(self) -> None:
        dist.barrier()


class AsyncDcp:
    """``dcp.async_save``: ``thread`` as it comes; ``process`` with its shared-memory stager, its best setting.

    State on a GPU is staged through pinned memory by copies that do not block, both kinds.
    """

    def __init__(self, state: dict[str, Any], folder: Path, kind: str) -> None:
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
        from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

        self.name = f"DCP async, {kind}"
        self._state = state
        self._folder = folder / f"dcp-{kind}"
        self._given: dict[str, Any] = {"async_checkpointer_type": AsyncCheckpointerType.THREAD}
        if kind == "process":
            self._given["async_checkpointer_type"] = AsyncCheckpointerType.PROCESS
        cuda = any(tensor.is_cuda for tensor in local_tensors(state))
        self._stager: Any = None
        if cuda or kind == "process":
            options = StagingOptions(
                use_shared_memory=kind == "process",
                use_async_staging=False,
                use_pinned_memory=cuda,
                use_non_blocking_copy=cuda,
            )
            self._stager = functools.partial(DefaultStager, options)
            self._given["async_stager"] = self._stager()
        self._group = dist.new_group(backend="gloo")
        self._running: Any = None

    def save(self, step: int) -> None:
        writer = dcp.FileSystemWriter(str(self._folder / str(step)), sync_files=True)
        self._running = dcp.async_save(self._state, storage_writer=writer, process_group=self._group, **self._given)

    def finish(self) -> None:
        running = getattr(self._running, "upload_completion", self._running)
        running.result()
        if self._stager is not None and not self._given["async_stager"]._state_dict_stager._deepcopy_dispatch:
            self._given["async_stager"] = self._stager()  # torch 2.11 empties it with each save; later ones keep it
        dist.barrier()
        if dist.get_rank() == 0:
            shutil.rmtree(self._folder, ignore_errors=True)
        dist.barrier()


class DeepSpeedZero3:
    """``engine.save_checkpoint`` of a ZeRO-3 engine with as many parameters; it does not fsync."""

    name = "DeepSpeed ZeRO-3"

    def __init__(self, folder: Path, width: int, layers: int) -> None:
        import deepspeed

        from benchmarks.checkpoints.model import BATCH, plain

        config = {
            "train_micro_batch_size_per_gpu": BATCH,
            "zero_optimization": {"stage": 3},
            "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "torch_adam": True}},
        }
        model = plain(width, layers)
        self._engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        self._engine.backward(self._engine(torch.randn(BATCH, width)).square().mean())
        self._engine.step()
        self._folder = folder / "deepspeed"

    def save(self, step: int) -> None:
        self._engine.save_checkpoint(str(self._folder), tag="latest-one")

    def finish(self) -> None:
        dist.barrier()
