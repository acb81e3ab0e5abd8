"""A save of two files, the second beside the first: Lightning writes ``epoch=0-step=10.ckpt`` and then ``last.ckpt``,
from which alone a restart goes on. The first was committed with the ``last.ckpt`` of the save before, or with none.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable

import pytest

from argosy.steps.launch.labelling import progress_of
from argosy.steps.launch.step_clock import Word
from tests.launch.nodes import Cluster


@pytest.fixture
def gang(cluster: Callable[..., Cluster]) -> Cluster:
    made = cluster(
        nnodes=1,
        nproc=1,
        checkpoint_expect=(),
        checkpoint_include=("*.json", "*.txt"),
        checkpoint_unit=("epoch=*.json",),
    )
    made.begin()
    return made


def write(gang: Cluster, name: str, step: int) -> None:
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / name, json.dumps({"global_step": step, "pad": "x" * 1000}))


def commits(gang: Cluster) -> list[tuple[int, dict[str, int]]]:
    """Of each commit its step, and the steps that its files tell."""
    told = []
    for checkpoint in gang.store.commits():
        shutil.rmtree(into := gang.root / "look", ignore_errors=True)
        gang.store.fetch(checkpoint, into)
        told.append(
            (checkpoint.step, {path.name: json.loads(path.read_text())["global_step"] for path in into.iterdir()})
        )
    return told


def test_what_comes_after_a_unit_is_committed_with_it(gang: Cluster) -> None:
    write(gang, "epoch=0-step=10.json", 10)
    time.sleep(1.5)  # as long as a large model is turned into bytes
    write(gang, "last.json", 10)
    whole = 10, {"epoch=0-step=10.json": 10, "last.json": 10}
    gang.until(lambda: commits(gang)[-1:] == [whole], "commit with both")
    time.sleep(1.5)
    write(gang, "epoch=0-step=20.json", 20)
    time.sleep(0.7)
    write(gang, "last.json", 20)
    gang.until(lambda: commits(gang)[-1][0] == 20, "commit of step 20")
    assert commits(gang)[-1][1] == {"epoch=0-step=20.json": 20, "last.json": 20}
    assert [step for step, _ in commits(gang)][-2:] == [10, 20]


def test_a_last_one_that_is_no_better_is_committed(gang: Cluster) -> None:
    """With a monitor no further file is named by its step: nothing was committed any more."""
    write(gang, "epoch=0-step=10.json", 10)
    write(gang, "last.json", 10)
    gang.until(lambda: len(commits(gang)) == 1, "commit")
    write(gang, "last.json", 20)
    gang.until(lambda: len(commits(gang)) == 2, "commit")
    assert commits(gang)[-1] == (20, {"epoch=0-step=10.json": 10, "last.json": 20})


def test_one_that_does_not_come_is_waited_for_in_vain_no_longer_than_it_took(gang: Cluster) -> None:
    write(gang, "epoch=0-step=10.json", 10)
    time.sleep(0.4)
    write(gang, "last.json", 10)
    gang.until(lambda: "last.json" in commits(gang)[-1:][0][1] if commits(gang) else False, "commit with both")
    time.sleep(0.8)
    write(gang, "epoch=0-step=20.json", 20)
    gang.until(lambda: commits(gang)[-1][0] == 20, "commit", 5)
    assert commits(gang)[-1][1] == {"epoch=0-step=20.json": 20, "last.json": 10}


def test_one_that_is_always_written_holds_up_nothing_for_ever(gang: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.steps.launch.opaque.PATIENCE_SECONDS", 0.5)
    write(gang, "epoch=0-step=10.json", 10)
    deadline = time.monotonic() + 20
    while not gang.store.commits():
        assert time.monotonic() < deadline, "no commit"
        gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "last.json", "{", "keep open")
        time.sleep(0.02)
    assert commits(gang) == [(10, {"epoch=0-step=10.json": 10})]


def test_a_log_beside_is_not_waited_for(gang: Cluster) -> None:
    write(gang, "epoch=0-step=10.json", 10)
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "log.txt", "x", "keep open")
    gang.until(lambda: len(commits(gang)) == 1, "commit")


def test_a_best_one_beside_holds_up_no_save_and_is_none(gang: Cluster) -> None:
    """Each save was waited for twice as long as a best model once took: with one kept nothing was committed any more.
    And a commit was called step 15 from which a restart goes on at 10.
    """
    write(gang, "epoch=0-step=10.json", 10)
    gang.until(lambda: len(commits(gang)) == 1, "commit")
    time.sleep(2.5)
    write(gang, "best.json", 15)
    time.sleep(1.0)
    assert [step for step, _ in commits(gang)] == [10]
    write(gang, "epoch=0-step=20.json", 20)
    gang.until(lambda: commits(gang)[-1] == (20, commits(gang)[-1][1] | {"best.json": 15}), "commit", 2)


def test_a_last_one_that_comes_before_its_unit(gang: Cluster) -> None:
    """YOLO writes ``last.pt`` and then ``epoch10.pt``: each was waited for, and gone when the next one came."""
    for step in range(10, 60, 10):
        write(gang, "last.json", step)
        time.sleep(0.4)
        write(gang, f"epoch=0-step={step}.json", step)
        (gang.nodes[0].folder / f"epoch=0-step={step - 10}.json").unlink(missing_ok=True)
        time.sleep(1.2)
        assert commits(gang)[-1] == (step, {f"epoch=0-step={step}.json": step, "last.json": step})


def test_a_buffer_that_is_always_written(gang: Cluster) -> None:
    """It is of the units' kind, but no save: they were committed when they had rested for half a minute, or never."""
    write(gang, "epoch=0-step=10.json", 10)
    deadline = time.monotonic() + 5
    while not gang.store.commits():
        assert time.monotonic() < deadline, "no commit"
        write(gang, "buffer.json", 1)
        time.sleep(0.02)
    assert commits(gang) == [(10, {"epoch=0-step=10.json": 10})]


def test_a_last_one_that_tells_no_step_is_of_what_was_printed_when_it_alone_was_written(gang: Cluster) -> None:
    """It was called what had been printed when its unit was written, however long ago."""
    node = gang.nodes[0]
    for step in range(1, 21):
        node.saves.step(0, Word(step, time.time()))
        time.sleep(0.02)
        if step == 10:
            node.ranks[0].write(node.folder / "epoch=0.json", '{"epoch": 0}')
            node.ranks[0].write(node.folder / "last.json", '{"x": 10}')
            gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    node.ranks[0].write(node.folder / "last.json", '{"x": 20}')
    gang.until(lambda: len(gang.store.commits()) == 2, "commit")
    assert [checkpoint.step for checkpoint in gang.store.commits()] == [10, 20]


def test_a_last_one_alone_after_a_restart_renews_the_budget(gang: Cluster) -> None:
    """Training had moved since its unit was written, which is old and was only restored."""
    node = gang.nodes[0]
    node.saves.step(0, Word(10, time.time()))
    node.ranks[0].write(node.folder / "epoch=0.json", '{"epoch": 0}')
    node.ranks[0].write(node.folder / "last.json", '{"x": 10}')
    gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    gang.begin()
    node = gang.nodes[0]
    for step in range(11, 21):
        node.saves.step(0, Word(step, time.time()))
        time.sleep(0.02)
    node.ranks[0].write(node.folder / "last.json", '{"x": 20}')
    gang.until(lambda: len(gang.store.commits()) == 2, "commit")
    assert [(checkpoint.step, progress_of(checkpoint)) for checkpoint in gang.store.commits()] == [(10, 1), (20, 2)]


def test_a_restart_goes_on_from_the_last_one_where_that_is_further(gang: Cluster) -> None:
    """Its commit is called step 20, and {newest} was the file of step 10: so it was trained, and counted, each time."""
    write(gang, "epoch=0-step=10.json", 10)
    write(gang, "last.json", 10)
    gang.until(lambda: commits(gang)[-1:] == [(10, {"epoch=0-step=10.json": 10, "last.json": 10})], "commit")
    gang.begin()
    assert gang.nodes[0].added == ["--resume=out/epoch=0-step=10.json"]
    write(gang, "last.json", 20)
    gang.until(lambda: commits(gang)[-1][0] == 20, "commit")
    gang.begin()
    assert gang.nodes[0].added == ["--resume=out/last.json"]
