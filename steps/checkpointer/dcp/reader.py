"""DCP's storage reader: any checkpoint of a state, saved by DCP or by Checkpointer, at any world size."""

from __future__ import annotations

import dataclasses
import io
import os
from typing import Any

import torch
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.checkpointer import Checkpointer
from argosy.steps.checkpointer.restoring import verified_reader
from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.state.filling import Read, Region, fill
from argosy.steps.state.stored import STATE_PATH, StoredState, StoredTensor, stored_state
from argosy.steps.state.tree import decode


class _Opened:
    """A checkpoint whose state.json was read: what DCP calls by dotted names, and where it lies."""

    def __init__(self, state: StoredState, read: Read) -> None:
        self.state = state
        self.read = read
        # A tensor without memory for each: the flat names are those that torch itself gives such a state.
        self._stand_ins = {
            name: torch.empty((), dtype=_dtype(tensor)).expand(tensor.shape) for name, tensor in state.tensors.items()
        }
        names = {id(tensor): name for name, tensor in self._stand_ins.items()}
        self.flat, self.paths = flatten_state_dict(decode(state.tree, self._stand_ins))
        self.names = {fqn: names[id(value)] for fqn, value in self.flat.items() if id(value) in names}

    def metadata(self) -> Metadata:
        """The stored state as DCP's planners want it described."""
        known = {
            fqn: _described(self.state.tensors[self.names[fqn]]) if fqn in self.names else BytesStorageMetadata()
            for fqn in self.flat
        }
        return Metadata(state_dict_metadata=known, planner_data=self.paths)

    def values(self) -> dict[str, Any]:
        """What is no tensor of its own, by dotted name; arrays and tensors inside of such values are read whole."""
        inside = set(self.state.tensors) - set(self.names.values())
        whole = {name: torch.empty_like(self._stand_ins[name]).contiguous() for name in inside}
        fill(self.state, {name: [((0,) * tensor.dim(), tensor)] for name, tensor in whole.items()}, self.read)
        return dict(flatten_state_dict(decode(self.state.tree, self._stand_ins | whole))[0])


def _dtype(tensor: StoredTensor) -> Any:
    return getattr(torch, tensor.dtype)


def _described(tensor: StoredTensor) -> TensorStorageMetadata:
    chunks = [ChunkStorageMetadata(torch.Size(piece.offset), torch.Size(piece.shape)) for piece in tensor.pieces]
    return TensorStorageMetadata(TensorProperties(dtype=_dtype(tensor)), torch.Size(tensor.shape), chunks)


def _as_planners_read(value: Any) -> io.BytesIO:
    # DCP's planners take values from torch.load. These bytes are made here and now of what was JSON; they never lay
    # in a store.
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


class ArgosyReader(StorageReader):
    """For one ``dcp.load``; every byte is verified before it is used, and every rank loads the same checkpoint.

    ``step`` and ``digest`` say what was loaded. A rank that cannot read, or would read another checkpoint, ends the
    load on all ranks; DCP's fallback to metadata of single ranks does not exist here.
    """

    def __init__(self, source: Checkpointer | CheckpointStore, digest: str = "") -> None:
        """``digest``: default is the checkpoint that argosy resumes from, or outside argosy the newest."""
        self.digest = digest
        self.step = 0
        self._resumes = isinstance(source, Checkpointer)
        self._store = source._store if isinstance(source, Checkpointer) else source
        self._opened: _Opened | None = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Checkpoints have digests, not ids: argosy is never chosen by one."""
        return False

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Called by DCP first; InputError for an id: the digest names the checkpoint."""
        if checkpoint_id is not None:
            raise InputError(f"checkpoint_id = {checkpoint_id!r}: give ArgosyReader a digest, and no checkpoint_id")

    def read_metadata(self) -> Metadata:
        """Made from ``state.json``. StepError: ``checkpoint_mismatch`` when there is none, CorruptCheckpoint."""
        if not self.digest:
            self.digest = self._chosen()
        read = verified_reader(self._store, self._store.by_digest(self.digest))
        try:
            self._opened = _Opened(stored_state(read(STATE_PATH)), read)
        except (ValueError, KeyError, TypeError) as error:
            raise StepError(Cause.CHECKPOINT_MISMATCH, f"checkpoint {self.digest}: {error}") from error
        self.step = self._opened.state.step
        return self._opened.metadata()

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing: :meth:`read_metadata` has what there is to know."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Tell the coordinator which checkpoint this rank reads."""
        return dataclasses.replace(plan, storage_data=self.digest)

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Coordinator: ValueError when two ranks read different checkpoints."""
        for rank, plan in enumerate(plans):
            if plan.storage_data != plans[0].storage_data:
                theirs, first = plan.storage_data, plans[0].storage_data
                raise ValueError(
                    f"rank 0 loads the checkpoint {first}, rank {rank} loads {theirs}; give all one digest"
                )
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Fill what the planner points at; only the files that hold something of it are read."""
        opened = self._opened
        assert opened is not None, "DCP calls read_metadata first"
        regions: dict[str, list[Region]] = {}
        filled, values = [], []
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                values.append(item)
                continue
            target = planner.resolve_tensor(item).detach()
            at = tuple(a + b for a, b in zip(item.storage_index.offset or (), item.storage_offsets, strict=True))
            regions.setdefault(opened.names[item.storage_index.fqn], []).append((at, target))
            filled.append((item, target))
        fill(opened.state, regions, opened.read)
        for item, target in filled:
            planner.commit_tensor(item, target)
        if values:
            flat = opened.values()
            for item in values:
                planner.load_bytes(item, _as_planners_read(flat[item.storage_index.fqn]))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _chosen(self) -> str:
        if self._resumes and os.environ.get(env.RUN_URI):
            digest = os.environ.get(env.RESUME_DIGEST, "")
        else:
            newest = self._store.newest()
            digest = newest.digest if newest else ""
        if not digest:
            raise StepError(Cause.CHECKPOINT_MISMATCH, "there is no checkpoint to load: start from scratch")
        return digest
