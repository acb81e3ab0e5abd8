"""One collective save: every rank writes its share, rank 0 commits, every rank learns the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import PartRef, Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.stopping import checked, failure, stop
from argosy.steps.contract.causes import EXIT_CODE, Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.state import random_generators
from argosy.steps.state.files import STATE_PATH, file_bytes, state_bytes
from argosy.steps.state.share import layout_of
from argosy.steps.state.tree import encode


class Save:
    """A save in the making; ``claimed`` is called on rank 0 only."""

    def __init__(self, store: CheckpointStore, ranks: Ranks, claimed: Callable[[], Claim], *, save_rng: bool) -> None:
        self._store = store
        self._ranks = ranks
        self._claimed = claimed
        self._save_rng = save_rng

    def run(self, step: int, state: Mapping[str, Any], *, final: bool) -> Saved:
        """Collective; raises as Checkpointer.save does."""
        name = self._begin(step)
        try:
            share = self._write_share(name, step, state)
        except InputError as error:
            self._ranks.gather({"input": True, "message": str(error)})
            raise
        except StepError as error:
            share = failure(error)
        shares = self._ranks.gather(share)
        _check_agreement(shares)
        return self._commit(name, step, shares, final)

    def _begin(self, step: int) -> str:
        record: dict[str, Any] = {}
        if self._ranks.rank == 0:
            try:
                record = {"name": self._store.new_save(self._claimed(), step)}
            except InputError as error:
                record = {"input": str(error)}
            except StepError as error:
                record = failure(error)
        record = checked(self._ranks.broadcast(record))
        if "input" in record:
            raise InputError(record["input"])
        return str(record["name"])

    def _write_share(self, name: str, step: int, state: Mapping[str, Any]) -> dict[str, Any]:
        tree, tensors = encode(state)
        layout = layout_of(tensors, self._ranks.rank, self._ranks.world_size)
        part = self._store.part(name, self._ranks.rank)
        if self._ranks.rank == 0:
            part.add_bytes(STATE_PATH, state_bytes(step, tree, layout.tensors))
        for file in layout.files:
            part.add_bytes(file.path, file_bytes(file, tensors))
        if self._save_rng:
            part.add_bytes(random_generators.random_path(self._ranks.rank), random_generators.capture())
        ref = part.finish()
        return {
            "fingerprint": layout.fingerprint,
            "part": {"key": ref.key, "size": ref.size, "sha256": ref.sha256, "total_bytes": ref.total_bytes},
        }

    def _commit(self, name: str, step: int, shares: list[dict[str, Any]], final: bool) -> Saved:
        record: dict[str, Any] = {}
        if self._ranks.rank == 0:
            parts = [PartRef(**share["part"]) for share in shares]
            try:
                record = asdict(
                    self._store.commit(
                        self._claimed(),
                        name,
                        step,
                        parts,
                        kind="tensors",
                        world_size=self._ranks.world_size,
                        final=final,
                    )
                )
            except StepError as error:
                record = failure(error)
        return Saved(**checked(self._ranks.broadcast(record)))


def _check_agreement(shares: list[dict[str, Any]]) -> None:
    for share in shares:
        checked(share)
    for rank, share in enumerate(shares):
        if "input" in share:
            stop(Cause.USER_EXCEPTION, f"rank {rank} could not save: {share['input']}", EXIT_CODE[Cause.USER_EXCEPTION])
        if share["fingerprint"] != shares[0]["fingerprint"]:
            message = (
                f"the states of rank 0 and rank {rank} differ in names, types or shapes: Checkpointer.save needs the "
                "same state on every rank"
            )
            stop(Cause.USER_EXCEPTION, message, EXIT_CODE[Cause.USER_EXCEPTION])
