"""A prune runs while the next save is being stored: it must not take that save for what a failed one left."""

from __future__ import annotations

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import ObjectStore


def stored(checkpoints: CheckpointStore, name: str) -> list[object]:
    part = checkpoints.part(name, 0)
    part.add_bytes("w", b"weights")
    return [part.finish()]


def test_the_next_save_survives_a_prune(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    claim = checkpoints.claim("gang")
    failed = checkpoints.new_save(claim, 3)
    stored(checkpoints, failed)
    first = checkpoints.new_save(claim, 6)
    checkpoints.commit(claim, first, 6, stored(checkpoints, first), kind="tensors", world_size=1, final=False)
    second = checkpoints.new_save(claim, 9)
    parts = stored(checkpoints, second)

    checkpoints.prune(1, claim)
    names = {info.key.split("/")[2] for info in inner.list("run/data")}
    assert names == {first, second}, "what failed before the newest commit is gone, what is being stored is not"
    checkpoints.commit(claim, second, 9, parts, kind="tensors", world_size=1, final=True)
    newest = checkpoints.newest()
    assert newest is not None
    checkpoints.verify(newest)

    # Whatever a generation left is dead as soon as another one rules.
    left = checkpoints.new_save(claim, 12)
    stored(checkpoints, left)
    checkpoints.prune(1, checkpoints.claim("next gang"))
    assert {info.key.split("/")[2] for info in inner.list("run/data")} == {second}
