"""Folders of several writers: a commit holds one whole step of every rank, or there is none."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.checkpoint.node_paths import merged
from argosy.steps.contract.channel import Part
from tests.launch.nodes import EVERY, Cluster


def test_each_node_gives_its_files_and_gets_them_back(
    capfd: pytest.CaptureFixture[str], cluster: Callable[..., Cluster]
) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    before = [node.files() for node in gang.nodes]
    assert [sorted(files) for files in before] == [
        ["checkpoint-10/rank0.json", "checkpoint-10/rank1.json"],
        ["checkpoint-10/rank2.json", "checkpoint-10/rank3.json"],
    ]
    gang.save(20, skip=(3,))  # never complete: must be gone after the restart
    gang.begin()
    assert [node.files() for node in gang.nodes] == before
    assert capfd.readouterr().out.count(" from this gang's nodes, 0 from the store\n") == 2
    assert [node.added for node in gang.nodes] == [["--resume=out/checkpoint-10"]] * 2
    assert not (gang.nodes[1].folder / "checkpoint-20").exists()
    newest = gang.store.newest()
    assert newest is not None
    assert newest.step == 10  # from the folder's name: nothing was told
    gang.save(20)
    gang.until(lambda: gang.committed() == [10, 20], "second commit")


def test_a_slow_rank_is_waited_for(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10, skip=(3,))
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question to node 1")
    time.sleep(0.5)
    assert gang.committed() == []
    gang.nodes[1].save(3, 10, how="keep open")
    time.sleep(0.5)
    assert gang.committed() == []
    gang.nodes[1].save(3, 10)
    gang.nodes[1].ranks[1].exit()  # the handle that it kept
    gang.nodes[1].ranks[1] = type(gang.nodes[1].ranks[1]).start()
    assert gang.committed() == []  # a rank of node 1 has ended, and how is not known


def test_torn_files_make_one_save_fail_by_the_node_s_name(
    capfd: pytest.CaptureFixture[str], cluster: Callable[..., Cluster]
) -> None:
    gang = cluster(**{**EVERY, "checkpoint_timeout_seconds": 1})
    gang.begin()
    gang.save(10, skip=(2,))
    text = json.dumps({"step": 10, "rank": 2, "pad": "x" * 5000})
    gang.nodes[1].ranks[0].write(gang.nodes[1].folder / "checkpoint-10/rank2.json", text[:3000])
    said = ""

    def told() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "the next one is tried" in said

    gang.until(told, "message")
    assert (
        "checkpoint out/checkpoint-10 not committed: node-1: checkpoint-10: checkpoint-10/rank2.json is cut off" in said
    )
    gang.save(20)
    gang.until(lambda: gang.committed() == [20], "commit of the next one")


def test_an_answer_to_an_older_save_belongs_to_nothing(
    capfd: pytest.CaptureFixture[str], cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.steps.launch.gathering.SLACK_SECONDS", 0.0)
    gang = cluster(**{**EVERY, "checkpoint_timeout_seconds": 1})
    gang.begin()
    ref = {"key": "data/x", "size": 1, "sha256": "0" * 64, "total_bytes": 1}
    late = Part(save="0000000010-g000001-abcdef", node="node-1", node_rank=1, state="given", ref=ref)
    gang.nodes[1].saves.stop()  # node 1 answers nothing but that
    gang.nodes[1].reporter.answer(late)
    gang.save(10)
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question")
    said = ""

    def told() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "not committed" in said

    gang.until(told, "message")
    assert "out/checkpoint-10 not committed: no answer of node rank 1 within 1 s; the next one is tried" in said
    assert gang.committed() == []


def test_the_supervisor_killed_between_the_parts_and_the_commit(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10, skip=(2, 3))
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question")
    gang.end_supervisor()  # node 1's answer finds nobody
    for rank in (2, 3):
        gang.nodes[1].save(rank, 10)
    time.sleep(0.6)
    assert gang.committed() == []
    gang.supervise()
    gang.channel.assign(gang.restart, {}, released=False)
    gang.until(lambda: gang.committed() == [10], "commit")


def test_a_node_that_is_lost_before_its_part(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    gang.save(20, skip=(2, 3))
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question")
    gang.lose(1)
    gang.begin()
    assert gang.committed() == [10]
    assert sorted(gang.nodes[1].files()) == ["checkpoint-10/rank2.json", "checkpoint-10/rank3.json"]
    gang.save(20)
    gang.until(lambda: gang.committed() == [10, 20], "commit")


@pytest.mark.parametrize("writers", ["", "every"])
def test_a_rank_killed_in_the_middle_of_its_file(cluster: Callable[..., Cluster], writers: str) -> None:
    """What it leaves parses and rests, and nobody has it open: only that it died tells."""
    gang = cluster(nnodes=2 if writers else 1, nproc=2, checkpoint_writers=writers, checkpoint_timeout_seconds=1)
    gang.begin()
    node, rank = gang.nodes[-1], gang.nnodes * 2 - 1
    gang.save(10, skip=(rank,))
    node.ranks[1].write(node.folder / f"checkpoint-10/rank{rank}.json", json.dumps({"step": 10}), "keep open")
    time.sleep(0.5)
    node.ranks[1].kill()
    time.sleep(0.8)
    assert gang.store.commits() == []


def test_all_nodes_files_in_one_folder_when_their_number_changed(cluster: Callable[..., Cluster]) -> None:
    from argosy.steps.contract.errors import StepError

    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    gang.end()
    fewer = cluster(nnodes=1, nproc=4, **EVERY)
    with pytest.raises(StepError, match="holds files of 2 nodes and 1 run now") as refused:
        fewer.begin()
    assert "checkpoint.reshard" in str(refused.value)
    again = cluster(nnodes=1, nproc=4, checkpoint_reshard="all", **EVERY)
    again.begin()
    assert sorted(again.nodes[0].files()) == [f"checkpoint-10/rank{rank}.json" for rank in range(4)]
    again.save(20)
    again.until(lambda: [again.step_of(one) for one in again.store.commits()] == [10, 20], "commit of one node")


def test_a_log_that_one_node_goes_on_writing_is_its_own(cluster: Callable[..., Cluster]) -> None:
    """With reshard = all each node has every file back; the one that it does not write to grows old there."""
    gang = cluster(checkpoint_reshard="all", **EVERY)
    for restart, step in enumerate((10, 20, 30), 1):
        gang.begin()
        for index, node in enumerate(gang.nodes):
            log = node.folder / f"log{index}.csv"
            with log.open("a") as target:
                target.write(f"{step}\n")
            rested = time.time() - 1
            os.utime(log, (rested, rested))
        gang.save(step)
        gang.until(lambda count=restart: len(gang.store.commits()) == count, "commit")
        newest = gang.store.newest()
        assert newest is not None
        files = {file.path: file.size for file in merged(newest.files)}
        assert (files["log0.csv"], files["log1.csv"]) == (3 * restart, 3 * restart)
        assert len([path for path in files if path.startswith(f"checkpoint-{step}/")]) == 4


def finish(gang: Cluster, *, final: bool) -> None:
    """Every rank ends well, and every node finishes."""
    for node in gang.nodes:
        for rank in node.ranks:
            rank.exit()
    ends = [threading.Thread(target=node.saves.finish, kwargs={"final": final}) for node in gang.nodes]
    for end in ends:
        end.start()
    for end in ends:
        end.join(15)
    assert not any(end.is_alive() for end in ends)


def test_the_end_takes_every_node_s_last_files(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(30)
    finish(gang, final=True)
    newest = gang.store.newest()
    assert newest is not None
    assert (gang.step_of(newest), newest.final) == (30, True)


def test_a_node_whose_ranks_end_first_waits_for_the_last_save(cluster: Callable[..., Cluster]) -> None:
    """It answers a save that node 0 began while it still trained, and must stay for the last one."""
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10, skip=(0, 1))
    for rank in gang.nodes[1].ranks:
        rank.exit()
    early = threading.Thread(target=gang.nodes[1].saves.finish, kwargs={"final": True})
    early.start()
    gang.save(10, skip=(2, 3))
    gang.until(lambda: gang.committed() == [10], "commit while node 0 trains on")
    assert early.is_alive()
    for rank in gang.nodes[0].ranks:
        rank.exit()
    gang.nodes[0].saves.finish(final=True)
    early.join(10)
    assert not early.is_alive()
    # The same bytes: the last commit takes the place of the one before it.
    assert [(gang.step_of(each), each.final) for each in gang.store.commits()] == [(10, True)]


def test_the_end_of_a_run_that_saved_nothing(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    finish(gang, final=True)
    assert gang.store.newest() is None


def test_a_last_checkpoint_after_a_sigterm(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    gang.save(15)
    finish(gang, final=False)
    assert gang.committed() == [10, 15]
    finish(gang, final=False)  # nothing is new: nobody waits
    assert gang.committed() == [10, 15]


@pytest.mark.parametrize("dies", [False, True])
def test_one_folder_that_all_nodes_share(cluster: Callable[..., Cluster], dies: bool) -> None:
    """Node 0 commits, but only the other node sees that its rank has a file open, or died in the middle of it."""
    gang = cluster(shared=True, checkpoint_timeout_seconds=2)
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    assert {file.path for file in gang.store.commits()[0].files} == {
        f"checkpoint-10/rank{rank}.json" for rank in range(4)
    }
    gang.save(20, skip=(3,))
    node = gang.nodes[1]
    node.ranks[1].write(node.folder / "checkpoint-20/rank3.json", json.dumps({"step": 20, "rank": 3}), "keep open")
    if dies:
        node.ranks[1].kill()
    time.sleep(0.8)
    assert gang.committed() == [10]
    if not dies:
        node.ranks[1].write(node.folder / "checkpoint-20/rank3.json", "", "close all")
        gang.until(lambda: gang.committed()[-1] == 20, "commit")


def test_on_a_volume_of_all_nodes_a_run_has_a_folder_of_its_own(
    cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    theirs = volume / "r0" / "checkpoint-90" / "rank0.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("of a run before")
    gang = cluster(checkpoint_path=f"{volume}/{{run_id}}")
    gang.begin()
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    gang.save(20, skip=(3,))
    gang.begin()
    assert sorted(path.relative_to(volume).as_posix() for path in volume.rglob("*.json")) == [
        "r0/checkpoint-90/rank0.json",
        *(f"r1/checkpoint-10/rank{rank}.json" for rank in range(4)),
    ]
    assert [node.added for node in gang.nodes] == [[f"--resume={volume}/r1/checkpoint-10"]] * 2
