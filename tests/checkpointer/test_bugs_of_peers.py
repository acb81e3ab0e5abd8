"""Bugs that lost or bent other people's trainings, each as a test. docs/bugs-of-peers.md says where the others are."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.checkpointer import Checkpointer
from argosy.steps.store import open_store


def saved(store: CheckpointStore, claim: Claim, step: int) -> str:
    part = store.part(name := store.new_save(claim, step), 0)
    part.add_bytes("weights", b"%d" % step * 100)
    return store.commit(claim, name, step, [part.finish()], kind="tensors", world_size=1, final=False).digest


def opened(path: Path) -> CheckpointStore:
    return CheckpointStore(open_store(path.as_uri()), "")


def test_the_old_one_stays_until_the_new_one_is_committed(gang: Callable[..., Any]) -> None:
    # KempnerForge#102, torchtitan: `latest` moved on, and the old one was purged, when a save was merely sent off.
    writers = gang(2, 1, keep=1)
    for rank in range(2):
        writers.save(rank, 1)
    writers.await_outcome(1)
    writers.signal(1, signal.SIGSTOP)
    for rank in range(2):
        writers.save(rank, 2)
    writers.until(lambda: writers.writers[0].stored == 2, [0])
    newest = writers.store.newest()
    assert newest.step == 10
    writers.store.verify(newest)
    writers.signal(1, signal.SIGCONT)
    writers.await_outcome(2)
    # Everybody is told before the old one goes.
    writers.until(lambda: [found.step for found in writers.store.commits()] == [20])


def test_retention_counts_only_what_can_be_restored(tmp_path: Path) -> None:
    # verl#4873 and Lightning#12225 (keep = 1), Megatron-Bridge#4678 and #4820, torchtitan (folders without metadata
    # counted): the last good one went.
    store = opened(tmp_path)
    claim = store.claim("test")
    good = saved(store, claim, 1)
    for step in (2, 3, 4):  # begun, never committed
        store.part(store.new_save(claim, step), 0).add_bytes("weights", b"half")
    torn = store.by_digest(saved(store, claim, 5))
    (tmp_path / torn.files[0].key).unlink()
    store.prune(1, claim)
    store.verify(store.by_digest(good))
    assert {found.digest for found in store.commits()} >= {good}


def test_files_emptied_by_a_power_cut_are_walked_past(tmp_path: Path) -> None:
    # diffusion-pipe#159: after a power cut files of size zero, and no way to tell.
    checkpointer = Checkpointer(tmp_path, asynchronous=False)
    for step in (1, 2):
        checkpointer.save(step, {"w": torch.full((1000,), float(step))})
    checkpointer.close()
    newest = opened(tmp_path).newest()
    assert newest is not None
    shard = max(newest.files, key=lambda file: file.size)
    (tmp_path / shard.key).write_bytes(b"")
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.step == 1
    assert torch.equal(restored.state["w"], torch.ones(1000))


def test_a_key_is_never_written_twice(tmp_path: Path) -> None:
    # torch DCP overwrites in place: killed before its metadata, it loads new values under the old name.
    store = opened(tmp_path)
    first = store.claim("first")
    saved(store, first, 7)
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    again = store.claim("the same step again")
    part = store.part(store.new_save(again, 7), 0)
    part.add_bytes("weights", b"other values")
    assert {path: path.read_bytes() for path in before} == before
    newest = opened(tmp_path).newest()
    assert newest is not None
    assert newest.generation == first.generation


def trained(steps: int, checkpointer: Checkpointer | None, stop: int) -> list[float]:
    """Learning rates used, step by step; saved at ``stop`` and gone on from a fresh start."""
    torch.manual_seed(1)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    begin, used = 0, []
    restored = checkpointer.restore() if checkpointer else None
    if restored is not None:
        begin = restored.step
        for name, part in parts.items():
            part.load_state_dict(restored.state[name])
    for step in range(begin + 1, steps + 1):
        used.append(optimizer.param_groups[0]["lr"])
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if checkpointer and restored is None and step == stop:
            checkpointer.save(step, {name: part.state_dict() for name, part in parts.items()}, wait=True)
            break
    return used


def test_the_learning_rate_does_not_jump(tmp_path: Path) -> None:
    # DeepSpeed#5788: the schedule began elsewhere after a resume.
    whole = trained(30, None, 0)
    first = Checkpointer(tmp_path)
    before = trained(30, first, 11)
    first.close()
    assert before + trained(30, Checkpointer(tmp_path), 0) == whole


def test_reports_in_any_order_a_hundred_times(gang: Callable[..., Any]) -> None:
    # composer#686: a barrier was missing; it took a hundred runs to see it.
    writers = gang(4, 2, keep=2)
    order = random.Random(20261121)
    for number in range(1, 101):
        for rank in order.sample(range(4), 4):
            writers.save(rank, number)
        writers.await_outcome(number)
        newest = writers.store.newest()
        assert (newest.step, len(newest.files)) == (number * 10, 4)
