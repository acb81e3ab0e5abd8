"""The script's side: what is stored is the state as it was when save was called, whatever happens afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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


pytestmark = pytest.mark.usefixtures("outside")


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
    with pytest.raises(InputError, match=f"fetch one with argosy checkpoint get {tmp_path} FOLDER"):
        Checkpointer.load(tmp_path)
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


def test_a_layout_that_changes_at_its_end_or_in_its_middle(tmp_path: Path) -> None:
    first = {name: torch.full((50_000,), float(number)) for number, name in enumerate("abcd")}
    states = [
        first,
        {**first, "d": torch.ones(7, dtype=torch.int64)},
        {name: tensor for name, tensor in first.items() if name != "d"},
        {**first, "b": torch.ones(3, 3)},
        {name: first[name] + 9 for name in "dcba"},
        {name: first[name] + 1 for name in "abcd"},
    ]
    checkpointer = Checkpointer(tmp_path)
    for number, state in enumerate(states, 1):
        checkpointer.save(number, state).wait()
        found = Checkpointer(tmp_path).restore()
        assert found is not None
        assert list(found.state) == list(state)
        assert all(torch.equal(found.state[name], state[name]) for name in state)
        store = CheckpointStore(open_store(tmp_path.as_uri()), "")
        newest = store.newest()
        assert newest is not None
        store.fetch(newest, tmp_path / f"got-{number}")
        stored = json.loads((tmp_path / f"got-{number}/state.json").read_text())["tensors"]
        assert set(stored) == set(state), "what the state before had is stored still"
    checkpointer.close()


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


def test_lazy_conjugates_are_other_tensors(tmp_path: Path) -> None:
    values = torch.complex(torch.randn(5), torch.randn(5))
    states = [{"a": values, "b": values.conj(), "c": values.imag, "d": values.conj().imag}, {"a": values.conj()}]
    checkpointer = Checkpointer(tmp_path)
    for step, state in enumerate([states[0], {"a": values}, states[1]], 1):
        checkpointer.save(step, state, wait=True)
        restored = Checkpointer(tmp_path).restore()
        assert restored is not None
        assert all(torch.equal(restored.state[name], state[name].resolve_conj().resolve_neg()) for name in state)
    checkpointer.close()


def test_wrong_uses_are_refused_in_words(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for given, said in (
        ({"every": -1}, "every = -1: at least 0"),
        ({"keep": "a"}, "keep = 'a': a w"),
        ({"every": ""}, "every"),
    ):
        with pytest.raises(InputError, match=said):
            Checkpointer(tmp_path, **given)  # type: ignore[arg-type]
    for path, said in (
        ("", "path = '': names no folder"),
        ("s3://bucket/ckpts", "path = 's3://bucket/ckpts': outside"),
    ):
        with pytest.raises(InputError, match=said):  # else a folder of that name, here
            Checkpointer(path)
    for one in (True, torch.tensor(1)):  # whole numbers, too
        assert Checkpointer(tmp_path, every=one, keep=one, asynchronous=False).due(3)  # type: ignore[arg-type]
    checkpointer = Checkpointer(tmp_path, every=1)
    for wrong in (5.0, "7", None, torch.ones(2)):
        with pytest.raises(InputError, match="a whole number is needed"):
            checkpointer.save(wrong, state_of(1))  # type: ignore[arg-type]
        with pytest.raises(InputError, match="a whole number is needed"):
            checkpointer.due(wrong)  # type: ignore[arg-type]
    for wrong in (None, [1], torch.nn.Linear(1, 1)):
        with pytest.raises(InputError, match=r"state = .*: a dict is needed"):
            checkpointer.save(1, wrong)  # type: ignore[arg-type]
    assert checkpointer.due(torch.tensor(2)) is True  # type: ignore[arg-type]
    checkpointer.save(2, state_of(2), final=True)
    checkpointer.save(torch.tensor(3), state_of(3), wait=True)  # type: ignore[arg-type]
    assert "step 3 is saved after step 2, which was to be the last" in capfd.readouterr().err
    checkpointer.close()
    checkpointer.close()
    with pytest.raises(InputError, match="was closed"):
        checkpointer.due(4)
    with pytest.raises(InputError, match="was closed"):
        checkpointer.save(4, state_of(4))
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.step == 3


def test_threads_take_turns_and_a_signal_handler_must_not_save(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, every=10**9, keep=0)
    checkpointer.prepare({"w": torch.ones(3_000_000)})
    states = [{"w": torch.full((3_000_000,), float(value))} for value in range(4)]
    threads = [threading.Thread(target=checkpointer.save, args=(1, state)) for state in states]
    for thread in threads:
        thread.start()
    step = 0
    while any(thread.is_alive() for thread in threads):
        step += 1
        checkpointer.due(step)  # looks at what the writer says, beside the threads
    caught: list[InputError] = []

    class Interrupting(dict[str, Any]):
        def items(self) -> Any:
            with pytest.raises(InputError, match="signal handler") as refused:
                checkpointer.save(2, states[0])
            caught.append(refused.value)
            return super().items()

    checkpointer.save(2, Interrupting(states[0]))
    checkpointer.close()
    assert caught
    store = CheckpointStore(open_store(f"file://{tmp_path}"), "")
    found = store.commits()
    assert [checkpoint.step for checkpoint in found] == [1, 1, 1, 1, 2]
    values = []
    for number, checkpoint in enumerate(found[:4]):
        store.fetch(checkpoint, tmp_path / f"fetched-{number}")
        loaded = Checkpointer.load(tmp_path / f"fetched-{number}").state["w"]
        assert loaded.min() == loaded.max(), "two saves mixed"
        values.append(loaded[0].item())
    assert sorted(values) == [0, 1, 2, 3]


FORKING = """
import os, sys
import torch
from argosy.steps.checkpointer import Checkpointer
from argosy.steps.contract.errors import InputError

def main():
    checkpointer = Checkpointer(sys.argv[1], every=1)
    checkpointer.save(1, {"w": torch.ones(3)}, wait=True)
    child = os.fork()
    if child == 0:
        try:
            checkpointer.save(2, {"w": torch.zeros(3)})
        except InputError as error:
            assert "forked" in str(error)
            sys.exit(9)  # its copy of the Checkpointer goes on the way out
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    checkpointer.due(2)
    checkpointer.save(2, {"w": torch.ones(3)}, wait=True)
    checkpointer.close()
    late = Checkpointer(sys.argv[1], asynchronous=False)
    assert late.save(3, {"w": torch.ones(3)}, wait=False).done()

main()
"""


def test_a_forked_child_leaves_its_parents_writer_alone(tmp_path: Path) -> None:
    # Under PYTHONSAFEPATH the first entry of sys.path is no script's folder: the writer needs it.
    environ = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", FORKING, str(tmp_path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.step == 3


def test_a_state_that_fails_to_be_read_ends_the_save_for_all(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save(1, state_of(1), wait=True)
    with pytest.raises(ValueError, match="4300 digits"):
        checkpointer.save(2, {"number": 10**5000})
    checkpointer._saver._await(lambda writer: writer.failure is not None)
    failure = checkpointer._saver.start().failure
    assert failure is not None
    assert failure["failure"]["code"] == 70
    assert "rank 0 could not save: ValueError" in failure["failure"]["message"]
    checkpointer.close()


def test_a_writer_that_does_not_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.steps.checkpointer.lines.SEND_SECONDS", 0.3)
    monkeypatch.setattr("argosy.steps.checkpointer.writer._END_SECONDS", 0.3)
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save(1, state_of(1), wait=True)
    os.kill(pid_of(checkpointer), signal.SIGSTOP)
    with pytest.raises(Stopped) as caught:
        checkpointer.save(2, {"numbers": list(range(1_000_000))})
    assert "does not read" in caught.value.message
    checkpointer.close()


LIMITED = """
import resource, sys
import torch
from argosy.steps.checkpointer import Checkpointer
from argosy.steps.state import plan
plan.FILE_BYTES = 16 << 20
checkpointer = Checkpointer(sys.argv[1])
state = {f"w{number}": torch.full((4_000_000,), float(number)) for number in range(5)}
checkpointer._saver.start()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20),) * 2)
checkpointer.save(1, state, wait=True)
checkpointer.close()
"""


def test_too_little_address_space_saves_one_file_at_a_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "saved one file at a time" in done.stderr
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert all((restored.state[f"w{number}"] == number).all() for number in range(5))


def test_a_run_that_leaves_the_interval_to_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.CHECKPOINT_EVERY, "0")
    theirs = Checkpointer(tmp_path, every=3, asynchronous=False)
    assert [step for step in range(1, 8) if theirs.due(step)] == [3, 6]
    assert not any(Checkpointer(tmp_path, asynchronous=False).due(step) for step in range(1, 8))
    monkeypatch.setenv(env.CHECKPOINT_EVERY, "2")
    ours = Checkpointer(tmp_path, every=3, asynchronous=False)
    assert [step for step in range(1, 8) if ours.due(step)] == [2, 4, 6]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_torch_dcp_and_save_do_not_share_a_checkpointer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from torch.distributed import checkpoint as dcp

    from argosy.steps.checkpointer.dcp import ArgosyWriter

    def by_dcp(checkpointer: Checkpointer, step: int) -> None:
        dcp.save({"w": torch.ones(3)}, storage_writer=ArgosyWriter(checkpointer, step), no_dist=True)

    theirs = Checkpointer(tmp_path / "dcp", asynchronous=False)
    by_dcp(theirs, 1)
    with pytest.raises(
        InputError, match=r"saved with torch DCP: it cannot commit with Checkpointer\.save as well; save"
    ):
        theirs.save(2, {"w": torch.ones(3)})
    by_dcp(theirs, 2)
    ours = Checkpointer(tmp_path / "ours", asynchronous=False)
    ours.save(1, {"w": torch.ones(3)})
    with pytest.raises(
        dcp.CheckpointException, match=r"saved with Checkpointer\.save: it cannot commit with torch DCP as well"
    ):
        by_dcp(ours, 2)
    ours.save(2, {"w": torch.ones(3)})
    ours.close()
    for name in ("dcp", "ours"):
        commits = CheckpointStore(open_store(f"file://{tmp_path}/{name}"), "").commits()
        assert [(commit.step, commit.generation) for commit in commits] == [(1, 1), (2, 1)]
    assert "fenced" not in capsys.readouterr().err
