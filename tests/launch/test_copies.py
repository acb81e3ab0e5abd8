"""What a node saved last lies on another node too, once it is committed, and outlives the first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.copies import Copies
from argosy.steps.launch.keeper import Keeper
from argosy.steps.launch.kept import KeptMemory
from argosy.steps.store import open_store
from tests.launch.test_kept import BYTES, DATA, FILE, SAVES, given, told

if TYPE_CHECKING:
    from tests.launch.conftest import Gang


@pytest.mark.torch
def test_a_lost_nodes_part_comes_from_the_node_that_keeps_a_copy_of_it(make_gang: Callable[[int], Gang]) -> None:
    gang, options = make_gang(2), {"script": "train.py", "nproc_per_node": 1, "checkpoint_peer_copy": True}
    for index in range(2):
        script = SAVES.replace("import torch,", "import signal, torch,")
        waits = "    if (first, step) == (1, 15):\n        signal.pause()\n    dist.barrier()"
        (gang.workspace(index) / "train.py").write_text(script.replace("    dist.barrier()", waits))
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(**options)
    gang.assign(0, generation=claim.generation, log_seq=claim.seq)
    copies = [f"holds a copy of what node {node} saved: 0.00 GB" for node in (1, 0)]
    gang.until(lambda: all(copy in pod.text() for copy, pod in zip(copies, gang.pods, strict=True)), 60, "copies")
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.step == 10
    claim = checkpoints.claim("second")
    gang.lose(1)
    gang.order("stop", root={"cause": "preempted_evicted"})
    gang.until(lambda: set(gang.channel.check_ins()) == {"pod-0"}, 30, "check-in of the one that is left")
    gang.reports.clear()
    gang.pods[1] = gang.pod(1, **options)
    gang.assign(1, generation=claim.generation, log_seq=claim.seq, resume_digest=newest.digest, resume_step=10)
    gang.until(lambda: gang.phases() == dict.fromkeys(gang.names, "finished"), 60, "end")
    assert min(step["step"] for step in gang.steps()) == 11
    told = gang.events("restored")
    assert sorted(event["rank"] for event in told) == [0, 1]
    for event in told:
        assert event["bytes"] > BYTES
        assert event["fetched_bytes"] < 20_000, "the small files only"
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]


@pytest.fixture
def saved() -> KeptMemory:
    """Of a node whose ranks run and have stored a save."""
    handle, kept = os.memfd_create("argosy-arena"), KeptMemory("secret")
    os.pwrite(handle, DATA, 4096)
    kept.take(told(handle))
    os.close(handle)
    return kept


def other_node(address: str) -> tuple[KeptMemory, Copies]:
    """The node behind the one at that address."""
    kept = KeptMemory("secret")
    assignment = Assignment(
        restart=0, attempt=1, node_rank=0, nnodes=2, master_addr="", master_port=0, run_id="r", workflow="w",
        generation=1, log_seq=1, resume_digest="", resume_step=0, dataset_digest="", args=[], keepers=["", address],
    )  # fmt: skip
    return kept, Copies(kept, assignment)


def in_memory() -> int:
    """How many copies this process holds, also of other tests."""
    names = (os.readlink(handle) for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink())
    return sum("argosy-copy" in name for name in names)


def until(seen: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_is_copied_when_it_is_committed_and_given_to_others(
    saved: KeptMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept, copies = other_node(Keeper(saved, None).address("127.0.0.1", always=True))
    assert saved.index() == {}, "nothing for a restart: its ranks run"
    copies.start()
    assert kept.index() == {}, "not before"
    copies.committed("save-1")
    until(lambda: kept.index() == {FILE.sha256: len(DATA)})
    copies.end()
    assert given(kept, tmp_path, monkeypatch) == DATA, "for this pod's own ranks"
    third = KeptMemory("secret")
    assert given(third, tmp_path, monkeypatch, [Keeper(kept, None).address("127.0.0.1")]) == DATA
    until(lambda: "holds a copy of what node 1 saved" in capfd.readouterr().out)


def test_a_copy_is_let_go_when_the_ranks_need_its_memory(
    saved: KeptMemory, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("argosy.steps.launch.copies._LOOK_SECONDS", 0.01)
    kept, copies = other_node(Keeper(saved, None).address("127.0.0.1", always=True))
    before = in_memory()
    copies.start()
    copies.committed("save-1")
    until(lambda: kept.index() == {FILE.sha256: len(DATA)})
    assert in_memory() == before + 1
    monkeypatch.setattr("argosy.steps.launch.copies._SHORT", 1 << 60)
    until(lambda: kept.index() == {})
    copies.end()
    copies._thread.join(10)
    assert in_memory() == before
    assert "memory is short: node 1's part of the last checkpoint comes from the store" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("bytes", "node 1 did not give what it saved"),
        ("room", "no room for a copy of what node 1 saved"),
        ("nothing", "holds no copy of what node 1 saved: it keeps nothing of it"),
    ],
)
def test_what_cannot_be_copied_is_told_once_and_not_held(
    saved: KeptMemory, wrong: str, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("argosy.steps.launch.copies._AGAIN_SECONDS", 0.0)
    (handle, start, _) = saved.opened(FILE.sha256) or (0, 0, 0)
    if wrong == "bytes":
        with open(f"/proc/self/fd/{handle}", "r+b") as memory:
            os.pwrite(memory.fileno(), b"another save began", start)
    elif wrong == "room":
        monkeypatch.setattr("argosy.steps.launch.copies._RESERVE", 1 << 60)
    kept, copies = other_node(Keeper(saved, None).address("127.0.0.1", always=True))
    copies.start()
    for save in ("save-2", "save-3"):
        saved.take(told(handle, save, files=wrong != "nothing"))
        copies.committed(save)
        until(lambda save=save: copies._copied == save)  # type: ignore[misc]
    copies.end()
    copies._thread.join(10)
    assert kept.index() == {}
    assert capfd.readouterr().out.count(said) == 1
    os.close(handle)
