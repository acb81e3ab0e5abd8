"""Saves of one process that overlap, as torch DCP's in the background may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Saved
from argosy.steps.checkpointer.claims import Claims
from argosy.steps.contract.errors import InputError
from argosy.steps.store import ObjectStore

TOGETHER = 8


def stored(checkpoints: CheckpointStore, claim: Claim, step: int) -> Callable[[], Saved]:
    """A save whose bytes are there; what commits it."""
    name = checkpoints.new_save(claim, step)
    part = checkpoints.part(name, 0)
    part.add_bytes("state", str(step).encode())
    parts = [part.finish()]
    return lambda: checkpoints.commit(claim, name, step, parts, kind="tensors", world_size=1, final=False)


def together(call: Callable[[], Any]) -> list[Any]:
    """What the call gives in each of several threads that begin it at the same moment."""
    barrier = threading.Barrier(TOGETHER)

    def one(_: int) -> Any:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(TOGETHER) as threads:
        return list(threads.map(one, range(TOGETHER)))


def test_a_save_that_a_later_step_overtook_is_not_committed_after_it(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("test")
    older, later = stored(checkpoints, claim, 1), stored(checkpoints, claim, 2)
    later()
    with pytest.raises(InputError, match="step = 1: step 2 is committed already"):
        older()
    checkpoints.prune(1, claim)
    assert [found.step for found in checkpoints.commits()] == [2]


def test_commits_and_prunes_of_one_claim_at_once_do_not_fence_each_other(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("test")
    saves = [stored(checkpoints, claim, 1) for _ in range(TOGETHER)]

    def commit_and_prune() -> None:
        saves.pop()()
        checkpoints.prune(1, claim)

    together(commit_and_prune)
    assert sum(entry.kind == "commit" for entry in checkpoints.log.entries()) == TOGETHER


def test_savers_that_come_at_once_make_one_claim(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "")
    claims = Claims(checkpoints, managed=False)
    assert len(set(together(lambda: claims.claim("torch DCP")))) == 1
    assert len(checkpoints.log.entries()) == 1
