"""A kill or a failure at every single store operation of claim, save and prune: nothing acknowledged is ever lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpoint.manifest import generation_of
from argosy.steps.contract.errors import StepError
from argosy.steps.store import ObjectStore, open_store

STEPS = (10, 20, 30, 40)


def train(store: Any, acknowledged: list[str], steps: tuple[int, ...] = STEPS) -> None:
    """One gang: claim, then save and prune; two writers per save, as two ranks would."""
    checkpoints = CheckpointStore(store, "run")
    claim = checkpoints.claim("gang")
    for step in steps:
        name = checkpoints.new_save(claim, step)
        refs = []
        for writer in range(2):
            part = checkpoints.part(name, writer)
            part.add_bytes(f"rank-{writer}.bin", f"{step}:{writer}".encode() * 50)
            refs.append(part.finish())
        saved = checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=2, final=step == STEPS[-1])
        acknowledged.append(saved.digest)
        checkpoints.prune(2, claim)


def check(store: ObjectStore, acknowledged: list[str]) -> None:
    """Everything promised holds now, and a new gang can go on from here."""
    reader = CheckpointStore(store, "run")
    entries = reader.log.entries()
    committed = [entry.digest for entry in entries if entry.kind == "commit"]
    assert [digest for digest in committed if digest in acknowledged] == acknowledged
    newest = reader.newest()
    if acknowledged:
        assert newest is not None
        assert committed.index(newest.digest) >= committed.index(acknowledged[-1])
        assert newest.digest == committed[-1]
    if newest is not None:
        reader.verify(newest)
        assert reader.by_digest(newest.digest) == newest
    kept = reader.commits()
    for checkpoint in kept:
        reader.verify(checkpoint)
    assert len(kept) >= min(2, len(committed))

    more: list[str] = []
    train(store, more, (50, 60, 70))
    after = CheckpointStore(store, "run")
    newest = after.newest()
    assert newest is not None
    assert newest.digest == more[-1]
    assert [entry.generation for entry in after.log.entries()] == sorted(e.generation for e in after.log.entries())
    # The new gang's prunes removed whatever the dead one left: all that lies there is committed.
    names = {info.key.split("/")[2] for info in store.list("run/data")}
    assert names == {checkpoint.name for checkpoint in after.commits()}
    assert all(generation_of(name) for name in names)
    roots = {info.key.rsplit("/", 1)[-1].removesuffix(".json") for info in store.list("run/manifests")}
    assert roots == {checkpoint.digest for checkpoint in after.commits()}


def test_at_every_operation(
    memory_path: Path, faulty: Callable[..., Any], killed: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    counted = faulty(open_store(f"file://{memory_path}/whole"))
    whole: list[str] = []
    train(counted, whole)
    check(counted.inner, whole)
    operations = len(counted.operations)
    assert operations > 80
    cases = 0
    # Killed before operation k is killed after operation k - 1: the same state.
    for kind in ("kill-after", "fail-before", "fail-after"):
        for at in range(operations):
            folder = memory_path / "case"
            store = faulty(open_store(f"file://{folder}"), at, kind)
            acknowledged: list[str] = []
            try:
                train(store, acknowledged)
            except killed:
                pass
            except StepError as error:
                if str(error) != "made by the test":
                    raise
            try:
                check(store.inner, acknowledged)
            except BaseException:
                with capsys.disabled():
                    print(f"\ncrash point: {kind} at {at}: {store.operations[at]}")
                raise
            shutil.rmtree(folder)
            cases += 1
    with capsys.disabled():
        print(f"[{cases} crash cases, {operations} operations]", end=" ")


def test_at_every_operation_of_the_recovery(
    memory_path: Path, faulty: Callable[..., Any], killed: type[BaseException]
) -> None:
    """A double fault: the second gang dies too, at each of its operations, after the first died in a save."""
    first = faulty(open_store(f"file://{memory_path}/first"), 70, "kill-before")
    acknowledged: list[str] = []
    with pytest.raises(killed):
        train(first, acknowledged)
    counted = faulty(open_store(f"file://{memory_path}/counted"))
    shutil.copytree(memory_path / "first", memory_path / "counted")
    train(counted, [], (50, 60, 70))
    for at in range(len(counted.operations)):
        folder = memory_path / "case"
        shutil.copytree(memory_path / "first", folder)
        store = faulty(open_store(f"file://{folder}"), at, "kill-after")
        mine = list(acknowledged)
        with pytest.raises(killed):
            train(store, mine, (50, 60, 70))
        check(store.inner, mine)
        shutil.rmtree(folder)
