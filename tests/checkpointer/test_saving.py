"""The script's side: what is stored is the state as it was when save was called, whatever happens afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpointer import Checkpointer, Stopped
from argosy.steps.checkpointer.arena import Arena
from argosy.steps.checkpointer.interval import NODE_HOURS, Interval, Schedule, failure_hours
from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.store import open_store

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARGOSY_") or name == "WORLD_SIZE"]:
        monkeypatch.delenv(name)


def state_of(step: int) -> dict[str, Any]:
    made = torch.Generator().manual_seed(step)
    weight = torch.randn(300, 70, generator=made)
    shared = torch.randn(5, generator=made)
    return {
        "weight": weight, "transposed": torch.randn(40, 30, generator=made).t(), "strided": weight[::3, ::2],
        "half": weight.bfloat16(), "empty": torch.empty(0, 3), "scalar": torch.tensor(float(step)),
        "conjugate": torch.complex(shared, shared).conj(), "twice": [shared, shared], "step": step,
    }  # fmt: skip


def pid_of(checkpointer: Checkpointer) -> int:
    writer = checkpointer._saver.start()
    assert writer._process is not None
    return writer._process.pid


def files_of(path: Path) -> dict[str, tuple[int, str]]:
    newest = CheckpointStore(open_store(f"file://{path}"), "").newest()
    assert newest is not None
    return {file.path: (file.size, file.sha256) for file in newest.files}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    flat = [(a[key], b[key]) for key in a if key not in ("step", "twice")] + list(
        zip(a["twice"], b["twice"], strict=True)
    )
    return a["step"] == b["step"] and all(torch.equal(one, other) for one, other in flat)


def test_asynchronous_stores_the_same_bytes_as_synchronous(tmp_path: Path) -> None:
    for kind in (True, False):
        checkpointer = Checkpointer(tmp_path / str(kind), asynchronous=kind)
        if kind:
            checkpointer.prepare(state_of(0))
        checkpointer.save(4, state_of(4), wait=True)
        checkpointer.close()
    assert files_of(tmp_path / "True") == files_of(tmp_path / "False")
    restored = Checkpointer(tmp_path / "True").restore()
    assert restored is not None
    assert same(restored.state, state_of(4))


def test_a_change_after_save_is_not_stored_and_the_next_save_waits(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    state = state_of(1)
    checkpointer.prepare(state)
    os.kill(pid_of(checkpointer), signal.SIGSTOP)
    first = checkpointer.save(1, state)
    for tensor in (state["weight"], state["half"], state["twice"][0]):
        tensor.zero_()
    state["step"] = 77
    assert not first.done()
    second: list[Any] = []
    thread = threading.Thread(target=lambda: second.append(checkpointer.save(2, state_of(2))))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive(), "the second save would have overwritten the first"
    os.kill(pid_of(checkpointer), signal.SIGCONT)
    thread.join(60)
    assert first.done()
    assert second[0].wait().step == 2
    store = CheckpointStore(open_store(f"file://{tmp_path}"), "")
    digest = first.digest
    checkpointer.close()
    assert [(found.step, found.digest) for found in store.commits()] == [(1, digest), (2, second[0].digest)]
    store.fetch(store.commits()[0], tmp_path / "first")
    assert same(Checkpointer.load(tmp_path / "first").state, state_of(1))
    late = Checkpointer(tmp_path)
    late.save(5, state)
    with pytest.raises(InputError, match="steps never go back"):
        late.save(4, state)


def test_a_layout_that_grows(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=0)
    checkpointer.prepare({"w": torch.ones(3)})
    checkpointer.save(1, {"w": torch.ones(3)})
    checkpointer.save(2, {"w": torch.ones(3), "moments": torch.full((999, 777), 2.0)})
    checkpointer.save(3, {"w": torch.zeros(2)})
    checkpointer.save(4, {"w": torch.zeros(2)})
    checkpointer.close()
    commits = CheckpointStore(open_store(f"file://{tmp_path}"), "")
    assert [checkpoint.step for checkpoint in commits.commits()] == [1, 2, 3, 4]  # keep=0: all of them
    for checkpoint in commits.commits():
        commits.verify(checkpoint)
    assert commits.commits()[1].bytes > 999 * 777 * 4


@pytest.mark.parametrize("kind", ["transposed", "conjugate", "negative"])
def test_a_tensor_that_lies_otherwise_than_at_the_save_before(tmp_path: Path, kind: str) -> None:
    """Same name, type and shape: the plan of the save before would copy other bytes."""
    numbers = torch.arange(9.0).reshape(3, 3)
    plain = torch.complex(numbers, numbers + 1)
    other = {"transposed": plain.t(), "conjugate": plain.conj(), "negative": plain.conj().imag}[kind]
    first = plain.imag if kind == "negative" else plain
    assert (first.dtype, first.shape) == (other.dtype, other.shape)
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save(1, {"w": first})
    checkpointer.save(2, {"w": other})
    checkpointer.close()
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert torch.equal(restored.state["w"], other)


def test_a_killed_writer_stops_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpointer = Checkpointer(tmp_path, every=10)
    checkpointer.save(10, state_of(1)).wait()
    os.kill(pid_of(checkpointer), signal.SIGKILL)

    def train() -> None:
        for step in range(11, 10_000_000):
            checkpointer.due(step)

    with pytest.raises(Stopped) as caught:
        train()
    assert caught.value.code == 75
    assert "was killed by signal 9" in capsys.readouterr().err
    checkpointer.close()


def test_a_failure_ends_training_at_the_step_that_all_are_told(tmp_path: Path) -> None:
    """A rank that stopped as soon as it heard of it would leave the others alone in a collective."""
    checkpointer = Checkpointer(tmp_path, every=10)
    checkpointer.save(1, {"w": torch.ones(3)}).wait()
    for step in (1, 2, 3):
        checkpointer.due(step)
        time.sleep(0.02)  # what a step takes
    CheckpointStore(open_store(f"file://{tmp_path}"), "").claim("a newer gang")
    checkpointer.save(4, {"w": torch.ones(3)})
    writer = checkpointer._saver.start()
    deadline = time.monotonic() + 60
    while writer.failure is None:
        checkpointer.due(4)
        assert time.monotonic() < deadline
    stop_at = int(writer.failure["stop_at"])
    assert stop_at > 4 + 1
    for step in range(5, stop_at):
        checkpointer.due(step)
    with pytest.raises(Stopped) as caught:
        checkpointer.due(stop_at)
    assert caught.value.code == 73
    checkpointer.close()


def test_more_memory_than_there_is_is_said_before_it_is_taken() -> None:
    arena = Arena()
    with pytest.raises(StepError, match=r"needs 10000\.0 GB of memory and .* GB are free"):
        arena.grow(10**13)
    arena.grow(1 << 20)
    arena.close()


def test_young_daly_and_everybody_at_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Interval(24.0).decide(0.05, 1.0, 0.5) == 186  # sqrt(2 * 0.05 s * 86,400 s) = 92.95 s
    assert Interval(24.0).decide(0.05, 200.0, 0.5) == 400  # never more often than the background can store
    assert Interval(24.0).decide(0.05, 1.0, 0.0) == 0
    assert failure_hours(4) == NODE_HOURS / 4
    monkeypatch.setenv(env.FAILURE_HOURS, "12.5")
    assert failure_hours(4) == 12.5
    for wrong in ("0", "-1", "nan", "inf", "often"):
        monkeypatch.setenv(env.FAILURE_HOURS, wrong)
        with pytest.raises(InputError, match="hours above 0"):
            failure_hours(1)

    # What came with save n counts from save n + 1 on, whenever a rank hears of it.
    schedule = Schedule(100)
    due = []
    decisions = [0, 50, 52, 20]
    for step in range(101, 240):
        if schedule.due(step):
            news = schedule.saved(step, decisions[len(due)])
            due.append((step, news.split(" from")[0]))
    assert due == [(110, ""), (120, "a checkpoint every 50 steps"), (170, ""), (222, "a checkpoint every 20 steps")]


def test_auto_decides_while_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.CHECKPOINT_EVERY, "auto")
    monkeypatch.setenv(env.FAILURE_HOURS, "0.0001")
    checkpointer = Checkpointer(tmp_path)
    saved = []
    for step in range(1, 2000):
        if checkpointer.due(step):
            checkpointer.save(step, {"w": torch.ones(10)}).wait()
            saved.append(step)
        if len(saved) == 3:
            break
    assert saved[:2] == [10, 20]
    checkpointer.close()
