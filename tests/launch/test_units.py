"""One node's folder: which entries are checkpoints, when one is whole, and which step it is of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.launch.step_clock import StepClock
from argosy.steps.launch.units import Unit, step_in, unit_of
from argosy.steps.launch.whole_files import looks_whole
from argosy.steps.pods.processes import is_running
from tests.launch.nodes import Cluster


@pytest.fixture
def one_node(cluster: Callable[..., Cluster]) -> Callable[..., Cluster]:
    def make(**options: Any) -> Cluster:
        made = cluster(nnodes=1, **options)
        made.begin()
        return made

    return make


@pytest.mark.parametrize(
    ("path", "globs", "name"),
    [
        ("checkpoint-500/model.bin", (), "checkpoint-500"),
        ("global_step500/mp_rank_00.pt", (), "global_step500"),
        ("iter_0000500/x", (), "iter_0000500"),
        ("epoch=1-step=10.ckpt/x", (), "epoch=1-step=10.ckpt"),
        ("my-model-checkpoint-7/x", (), "my-model-checkpoint-7"),
        ("tmp-checkpoint-500/x", (), ""),
        (".checkpoint-500/x", (), ""),
        ("checkpoint-500.tmp/x", (), ""),
        ("checkpoint-best/x", (), ""),
        ("rank0/x", (), ""),
        ("runs/checkpoint-500/x", (), ""),
        ("epoch=1-step=10.ckpt", (), ""),  # a file is a unit of its own only when it is said to be
        ("epoch=1-step=10.ckpt", ("*.ckpt",), "step=10"),
        ("last.ckpt", ("*.ckpt",), "last.ckpt"),
        ("step10-rank0.pt", ("step*",), "step=10"),
        ("step10-rank1.pt", ("step*",), "step=10"),
        ("checkpoint-500/x", ("save_*",), ""),
    ],
)
def test_what_a_file_belongs_to(path: str, globs: tuple[str, ...], name: str) -> None:
    assert unit_of(path, globs) == name


def test_steps_in_names() -> None:
    names = ["checkpoint-500", "global_step20", "epoch=3-step=10.ckpt", "iter_0000500", "epoch_4", "footstep9", "v2"]
    assert [step_in(name) for name in names] == [500, 20, 10, 500, None, None, None]
    assert step_in("step_3_of_step_9") is None


@pytest.mark.parametrize(
    ("named", "told", "expected"),
    [
        (30, [28, 29], 30),  # saved before it is told
        (30, [30], 30),
        (500, [480, 490], 500),  # it tells every tenth step
        (1_000_000, [8, 9], 9),  # that counts something else
        (29, [29, 30], 30),  # older than what is told
        (500, [], 500),
        (None, [28, 29], 29),
        (None, [], 7),  # the restored state may have been saved again
    ],
)
def test_the_step_of_a_commit(named: int | None, told: list[int], expected: int) -> None:
    clock = StepClock(7)
    for step in told:
        clock.tell(step, 100.0)
    unit = Unit("x", {"x/y": (1, int(200e9), 1)}, named)
    assert clock.label(unit, again=False, final=False) == expected


def crashed_after(saves: int, resumed: int, *, tells_steps: bool) -> int:
    """The newest commit's step after a restart that told no step and saved so often."""
    clock = StepClock(resumed, tells_steps=tells_steps)
    for number in range(saves):
        unit = Unit("", {"ckpt.pt": (1, int((200 + number) * 1e9), number)}, None)
        clock.committed(clock.label(unit, again=False, final=False))
    return clock.last


def test_saving_the_restored_state_again_is_no_progress() -> None:
    # The budget is renewed by a commit of a higher step: a script that crashes after this must not have one.
    assert crashed_after(1, 20, tells_steps=False) == 20
    assert crashed_after(3, 20, tells_steps=True) == 20
    # A script that never tells a step: the first save may be of the same state, the next cannot.
    assert crashed_after(3, 20, tells_steps=False) == 22
    assert crashed_after(3, 0, tells_steps=False) == 3
    told = StepClock(20, tells_steps=True)
    told.tell(21, 100.0)
    assert told.label(Unit("", {"ckpt.pt": (1, int(200e9), 1)}, None), again=False, final=False) == 21
    named = Unit("step-25", {"step-25/x": (1, int(200e9), 1)}, 25)
    assert StepClock(20, tells_steps=True).label(named, again=False, final=False) == 25


def test_words_that_arrive_late_are_words() -> None:
    # A final checkpoint of step 60 was labelled 58, and a run with end_step = 60 would not have ended.
    clock = StepClock(50)
    for step, when in ((57, 90.0), (58, 100.0), (59, 300.0), (60, 301.0)):
        clock.tell(step, when)
    unit = Unit("global_step60", {"global_step60/x": (1, int(200e9), 1)}, 60)
    assert clock.label(unit, again=False, final=True) == 60
    assert clock.label(Unit("checkpoint-61000", {"x": (1, int(200e9), 1)}, 61000), again=False, final=True) == 58


def test_a_step_told_after_the_files_changed_is_not_theirs() -> None:
    clock = StepClock(7)
    clock.tell(28, 100.0)
    clock.tell(29, 300.0)
    assert clock.label(Unit("", {"x": (1, int(200e9), 1)}, None), again=False, final=False) == 28


def test_a_half_written_checkpoint_does_not_hold_back_the_one_before(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    gang.nodes[0].save(0, 20)  # rank 1 is not there yet
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit of the older one")
    gang.nodes[0].save(1, 20)
    gang.until(lambda: gang.committed() == [10, 20], "commit")
    assert {file.path.split("/")[0] for file in gang.store.commits()[-1].files} == {"checkpoint-20"}


def test_older_checkpoints_go_along_when_asked_for(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(checkpoint_units_stored="all")
    gang.save(10)
    gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    gang.save(20)
    gang.nodes[0].save(0, 15, how="keep open")
    gang.until(lambda: len(gang.store.commits()) == 2, "commit")
    found = {file.path.split("/")[0] for file in gang.store.commits()[-1].files}
    assert found == {"checkpoint-10", "checkpoint-20"}


def test_an_early_latest_does_no_harm(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    latest, rank = gang.nodes[0].folder / "latest", gang.nodes[0].ranks[0]
    pattern = "global_step{step}/rank{rank}.json"
    gang.save(10, name=pattern)
    rank.write(latest, "global_step10")
    gang.until(lambda: len(gang.store.commits()[-1:]) == 1 and "latest" in paths(gang), "commit with its latest")
    gang.save(20, name=pattern, skip=(1,))
    rank.write(latest, "global_step20")  # as DeepSpeed does: before the other ranks are done
    time.sleep(0.6)
    assert set(gang.committed()) == {10}
    gang.nodes[0].save(1, 20, name=pattern)
    gang.until(lambda: gang.committed()[-1] == 20, "commit")
    gang.save(30, name=pattern)  # whole, but the script would still go on from the one before
    time.sleep(0.6)
    assert gang.committed()[-1] == 20
    rank.write(latest, "global_step30")
    gang.until(lambda: gang.committed()[-1] == 30, "commit")
    gang.begin()
    assert latest.read_text() == "global_step30"
    assert not (gang.nodes[0].folder / "global_step20").exists()


def paths(gang: Cluster) -> list[str]:
    return [file.path for file in gang.store.commits()[-1].files]


def test_a_marker_is_waited_for(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(checkpoint_expect=(), checkpoint_marker="DONE")
    gang.save(10)
    time.sleep(0.8)
    assert gang.store.commits() == []
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "checkpoint-10/DONE", "")
    gang.until(lambda: gang.committed() == [10], "commit")
    assert "checkpoint-10/DONE" in paths(gang)


@pytest.mark.parametrize(
    ("first", "last"), [("training_args.bin", "trainer_state.json"), ("__0_0.distcp", ".metadata")]
)
def test_what_everybody_writes_last_is_waited_for(one_node: Callable[..., Cluster], first: str, last: str) -> None:
    gang = one_node(checkpoint_expect=())
    folder, rank = gang.nodes[0].folder / "checkpoint-10", gang.nodes[0].ranks[0]
    rank.write(folder / first, "x")
    time.sleep(0.6)
    assert gang.store.commits() == []
    rank.write(folder / last, "{}")
    gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    assert sorted(paths(gang)) == sorted(f"checkpoint-10/{name}" for name in (first, last))


def test_a_log_that_stays_open_beside_the_checkpoints(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "runs/events", "x", "keep open")
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    assert "runs/events" not in paths(gang)


@pytest.mark.parametrize(
    ("name", "text", "whole"),
    [
        ("a.json", '{"a": 1}', True), ("a.json", '{"a": ', False), ("a.json", '{"a": 1}\n{"a": 2}\n', True),
        ("a.json", '{"a": 1}\n{"a": ', False), ("a.json", "", False), ("a.distcp", "PK\x03", False),
        ("a.pt", "", False), ("a.distcp", "other", True), ("a.bin", "anything", True),
        ("a.pt", "PK\x03\x04 cut", False),
    ],
)  # fmt: skip
def test_what_can_be_parsed(name: str, text: str, whole: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert looks_whole(tmp_path / name) is whole


def test_an_ended_process_does_not_run() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_running(child.pid):
        assert time.monotonic() < deadline
    child.communicate()  # until here it was a zombie
    assert not is_running(child.pid)


def test_what_is_missing_is_said_once(
    one_node: Callable[..., Cluster], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.steps.launch.opaque.PATIENCE_SECONDS", 0.5)
    gang = one_node()
    gang.save(10, skip=(1,))
    gang.nodes[0].ranks[1].write(gang.nodes[0].folder / "checkpoint-10/other.json", json.dumps({}))
    said = ""

    def told() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "not committed" in said

    gang.until(told, "message")
    time.sleep(0.5)
    said += capfd.readouterr().err
    assert said.count("checkpoint out/checkpoint-10 not committed: there is no rank1.json of rank 1") == 1
    assert gang.store.commits() == []
