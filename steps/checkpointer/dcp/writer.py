"""DCP's storage writer: every rank writes the items that DCP planned for it, the coordinator commits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import PartRef, Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpoint.writer import PartWriter
from argosy.steps.checkpointer.checkpointer import Checkpointer
from argosy.steps.checkpointer.commits import report
from argosy.steps.checkpointer.dcp.tree import nested
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.state.files import filled
from argosy.steps.state.placement import narrowed
from argosy.steps.state.plan import Held, Piece, TensorFacts, files_of, pieces_of, shard_path
from argosy.steps.state.share import Block, check_type, file_layout
from argosy.steps.state.stored import STATE_PATH, state_bytes
from argosy.steps.state.tree import encode

_PART = ".argosy part"


class ArgosyWriter(StorageWriter):
    """For one ``dcp.save`` or ``dcp.async_save`` (threads): when that returns, the checkpoint is committed.

    ``saved`` is then set on the coordinator. What JSON cannot hold is refused by its name. An error of the store, or a
    newer generation (fenced), comes out of DCP as its CheckpointException on all ranks; the line
    ``argosy: <cause> …`` is on the standard error.
    """

    def __init__(self, to: Checkpointer | CheckpointStore, step: int, *, final: bool = False) -> None:
        """``to``: the run's Checkpointer, which then saves by DCP only, or a bare store (which this writer claims)."""
        self.step = step
        self.final = final
        self.saved: Saved | None = None
        self._checkpointer = to if isinstance(to, Checkpointer) else None
        self._store = to._store if isinstance(to, Checkpointer) else to
        self._began = time.monotonic()
        self._claimed: Claim | None = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Checkpoints have steps and digests, not ids: argosy is never chosen by one."""
        return False

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Called by DCP first; InputError for an id: the step names the checkpoint."""
        if checkpoint_id is not None:
            raise InputError(f"checkpoint_id = {checkpoint_id!r}: give ArgosyWriter the step, and no checkpoint_id")

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """InputError without collectives: nobody would know that all ranks have written; or when the Checkpointer has
        saved by itself, since two committers would fence each other.
        """
        if not kwargs.get("use_collectives", True):
            raise InputError(
                "use_collectives = False: a checkpoint is committed when all ranks have said that they wrote"
            )
        if self._checkpointer is not None:
            self._checkpointer._claims.reserve("torch DCP")

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Change nothing of the plan."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Coordinator: draw the save's name, give it to every rank."""
        if not all(getattr(plan, "usable", True) for plan in plans):
            raise InputError("enable_plan_caching = True: cached plans name an older save; switch it off")
        with _told():
            name = self._store.new_save(self._claim(), self.step)
        return [dataclasses.replace(plan, storage_data=[name, rank]) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Store this rank's items; the future is done when they are durable."""
        name, rank = plan.storage_data
        with _told():
            results = _Share(self._store.part(name, rank), rank).written(plan.items, planner)
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Coordinator: write ``state.json`` and commit."""
        everything = [result for rank in results for result in rank]
        refs = [PartRef(**result.storage_data["part"]) for result in everything if result.index.fqn == _PART]
        name = refs[0].key.split("/")[1]
        tree, tensors = _described(metadata, [result for result in everything if result.index.fqn != _PART])
        with _told():
            part = self._store.part(name, len(results))
            part.add_bytes(STATE_PATH, state_bytes(self.step, tree, tensors))
            self.saved = self._store.commit(
                self._claim(),
                name,
                self.step,
                [*refs, part.finish()],
                kind="tensors",
                world_size=len(results),
                final=self.final,
            )
        self._report(self.saved)

    def _claim(self) -> Claim:
        if self._claimed is None:
            made = self._checkpointer._claims.claim("torch DCP") if self._checkpointer else None
            self._claimed = made or self._store.claim(f"dcp:{os.getpid()}")
        return self._claimed

    def _report(self, saved: Saved) -> None:
        if self._checkpointer is not None:
            report(saved, time.monotonic() - self._began)
            self._checkpointer._prune()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """The line that launch looks for, and an error that DCP can carry to the other ranks."""
    try:
        yield
    except StepError as error:
        line = str(error) if str(error).startswith(f"{error.cause} ") else f"{error.cause} {error}"
        print(f"argosy: {line}", file=sys.stderr, flush=True)
        raise RuntimeError(line) from error


class _Share:
    """What one rank writes."""

    def __init__(self, part: PartWriter, rank: int) -> None:
        self._part = part
        self._rank = rank
        self._sources: dict[str, Any] = {}
        self._shards: list[Piece] = []
        self._whole: list[Piece] = []
        """Of tensors that this rank writes for all: in files of their own, see :func:`argosy.steps.state.plan.plan`."""
        self._types: dict[str, str] = {}

    def written(self, items: Sequence[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        """Write the files; one result per item, and one for the part."""
        results = [WriteResult(item.index, *self._taken(item, planner)) for item in items]
        where: dict[str, str] = {}
        for number, pieces in enumerate([*files_of(self._shards), *files_of(self._whole)]):
            layout = file_layout(shard_path(self._rank, number), pieces, self._types)
            self._part.add_bytes(layout.path, filled(layout, self._source))
            where |= {piece.name: layout.path for piece in pieces}
        for result in results:
            for piece in _pieces_in(result.storage_data):
                piece["file"] = where[piece["name"]]
        part = {"part": dataclasses.asdict(self._part.finish())}
        return [*results, WriteResult(MetadataIndex(_PART), 0, part)]

    def _source(self, block: Block) -> Any:
        return narrowed(self._sources[block.piece.name], block.piece.source, block.piece.shape)

    def _taken(self, item: WriteItem, planner: SavePlanner) -> tuple[int, dict[str, Any]]:
        fqn = item.index.fqn
        if item.type == WriteItemType.BYTE_IO:
            return self._value(fqn, planner)
        data = planner.resolve_data(item).detach()
        facts = item.tensor_data
        assert facts is not None, "DCP describes every tensor"
        return self._tensor(fqn, data, tuple(facts.chunk.offsets), tuple(facts.size))

    def _value(self, fqn: str, planner: SavePlanner) -> tuple[int, dict[str, Any]]:
        if not hasattr(planner, "lookup_object"):
            raise InputError(f"{type(planner).__name__} is no DefaultSavePlanner: only that gives values unpickled")
        tree, tensors = encode({fqn: planner.lookup_object(MetadataIndex(fqn))})
        parts = {name: self._tensor(name, t, (0,) * t.dim(), tuple(t.shape))[1] for name, t in tensors.items()}
        value = tree[fqn] if fqn in tree else tree["$dict"][0][1]
        return 0, {"value": value, "tensors": parts}

    def _tensor(
        self, name: str, data: Any, offset: tuple[int, ...], size: tuple[int, ...]
    ) -> tuple[int, dict[str, Any]]:
        dtype = str(data.dtype).removeprefix("torch.")
        check_type(name, dtype)
        facts = TensorFacts(name, dtype, size, data.element_size())
        pieces = pieces_of(facts, Held(offset, tuple(data.shape), (0,) * data.dim(), (self._rank,)))
        self._types[name] = dtype
        (self._whole if tuple(data.shape) == size else self._shards).extend(pieces)
        self._sources |= {piece.name: data for piece in pieces}
        described = [{"name": piece.name, "offset": list(piece.offset), "shape": list(piece.shape)} for piece in pieces]
        return data.nbytes, {"dtype": dtype, "shape": list(size), "pieces": described}


def _pieces_in(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from record.get("pieces", ())
    for tensor in record.get("tensors", {}).values():
        yield from tensor["pieces"]


def _described(metadata: Metadata, results: list[WriteResult]) -> tuple[Any, dict[str, Any]]:
    """The tree and the ``tensors`` of state.json."""
    tensors: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for result in results:
        record, fqn = result.storage_data, result.index.fqn
        if "value" in record:
            values[fqn] = record["value"]
            tensors |= record["tensors"]
        else:
            tensors.setdefault(fqn, record | {"pieces": []})["pieces"] += record["pieces"]
    paths = metadata.planner_data or {}
    leaves = {
        paths.get(fqn, (fqn,)): values[fqn] if isinstance(kind, BytesStorageMetadata) else {"$tensor": fqn}
        for fqn, kind in metadata.state_dict_metadata.items()
    }
    return nested(leaves), tensors
