"""What a node answers to node 0's save, and what node 0 makes of its own files meanwhile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from argosy.steps.contract.channel import Save
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.trouble import Trouble
from tests.launch.nodes import EVERY, Cluster


def test_a_question_of_another_restart_is_not_answered(cluster: Callable[..., Cluster]) -> None:
    gang = cluster(**EVERY)
    gang.begin()
    gang.nodes[0].saves.stop()
    gang.save(10)
    for generation, answered in ((gang.generation - 1, False), (gang.generation + 1, False), (gang.generation, True)):
        name = f"0000000010-g{generation:06d}-abcdef"
        gang.nodes[0].reporter.gather(Save(name=name, unit="checkpoint-10", last=False))
        gang.until(lambda name=name: getattr(gang.nodes[1].reporter.asked(), "name", "") == name, "question")
        if answered:
            gang.until(lambda name=name: gang.nodes[0].reporter.parts(name), "answer")
        else:
            time.sleep(0.4)
            assert gang.nodes[0].reporter.parts(name) == []


@pytest.mark.parametrize("touched", [True, False])
def test_who_gave_its_part_of_the_last_save_has_left(cluster: Callable[..., Cluster], touched: bool) -> None:
    """A second try asked it in vain until ``checkpoint.timeout`` was over, and called it silent."""
    gang = cluster(shared=True, nproc=1, checkpoint_timeout_seconds=3)
    gang.begin()
    first, second = gang.nodes
    for node in gang.nodes:
        node.ranks[0].exit()
    for rank in (0, 1):
        path = first.folder / f"checkpoint-10/rank{rank}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"step": 10, "rank": rank}))
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(first.saves.finish, final=True)
        gang.until(lambda: list(gang.root.glob("store/**/parts/*.json")), "part of the first node")
        if touched:
            os.utime(path)
        second.saves.finish(final=True)
        second.saves.stop()
        if touched:
            with pytest.raises(StepError, match="something still writes to out"):
                end.result()
        else:
            end.result()
    assert gang.committed() == [10] * (not touched)


def test_a_node_answers_when_its_ranks_have_closed_their_files(cluster: Callable[..., Cluster]) -> None:
    """In the folder that nodes share only the rank's own node can see that it still writes."""
    gang = cluster(shared=True, checkpoint_timeout_seconds=20)
    gang.begin()
    node, reporter = gang.nodes[1], gang.nodes[0].reporter
    gang.nodes[0].saves.stop()
    node.save(3, 20, how="keep open")
    name = f"0000000020-g{gang.generation:06d}-abcdef"
    reporter.gather(Save(name=name, unit="checkpoint-20", last=False))
    gang.until(node.reporter.asked, "question")
    time.sleep(0.4)
    assert reporter.parts(name) == []
    node.ranks[1].write(node.folder / "checkpoint-20/rank3.json", "", "close all")
    gang.until(lambda: reporter.parts(name), "answer")
    assert [(part.state, part.ref) for part in reporter.parts(name)] == [("given", None)]


def test_a_file_that_changes_while_another_node_is_asked(cluster: Callable[..., Cluster]) -> None:
    """On a folder that nodes share a rank elsewhere may write to it; here node 0's own does."""
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(10, skip=(2, 3))
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question")
    first = gang.nodes[1].reporter.asked()
    gang.until(lambda: len(list(gang.root.glob("store/**/rank1.json"))) == 1, "node 0's files in the store")
    gang.nodes[0].save(0, 11, name="checkpoint-10/rank{rank}.json")
    for rank in (2, 3):
        gang.nodes[1].save(rank, 10)
    gang.until(lambda: gang.nodes[1].reporter.asked() not in (None, first), "a save that begins again")
    assert gang.store.commits() == []


SAVES = {**EVERY, "checkpoint_reshard": "all"}
UNIT = "global_step{step}/rank{rank}.json"


def test_a_script_that_saves_faster_than_the_nodes_answer_has_commits(cluster: Callable[..., Cluster]) -> None:
    """Its rank 0 says ``latest`` of the next save while node 1 is still asked for this one."""
    gang = cluster(**SAVES)
    gang.begin()
    latest, rank = gang.nodes[0].folder / "latest", gang.nodes[0].ranks[0]
    gang.save(10, skip=(2, 3), name=UNIT)
    rank.write(latest, "global_step10")
    gang.until(lambda: gang.nodes[1].reporter.asked(), "question")
    gang.until(lambda: list(gang.root.glob("store/**/parts/000000.json")), "node 0's part")
    gang.nodes[0].save(0, 20, name=UNIT)
    rank.write(latest, "global_step20")
    for other in (2, 3):
        gang.nodes[1].save(other, 10, name=UNIT)
    gang.until(lambda: gang.committed() == [10], "commit")
    (commit,) = gang.store.commits()
    gang.store.fetch(commit, gang.root / "look")
    assert (gang.root / "look/argosy-node-000000/latest").read_text() == "global_step10"


def test_a_latest_that_another_node_writes_is_not_asked_where_it_was_only_restored(
    cluster: Callable[..., Cluster],
) -> None:
    gang = cluster(**SAVES)
    gang.begin()
    gang.save(10, name=UNIT)
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "latest", "global_step10")
    gang.until(lambda: gang.committed() == [10], "commit")
    gang.begin()
    assert (gang.nodes[1].folder / "latest").read_text() == "global_step10"
    gang.save(20, name=UNIT)
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "latest", "global_step20")
    gang.until(lambda: gang.committed() == [10, 20], "commit after the restore")


def test_steps_that_count_anew_in_each_epoch_are_waited_for(cluster: Callable[..., Cluster]) -> None:
    """What the slow node has of the epoch before bears a greater step, and is no sign that it removed this one."""
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(30, name="epoch-0-step-{step}/rank{rank}.json")
    gang.until(lambda: gang.committed() == [30], "commit")
    second = "epoch-1-step-{step}/rank{rank}.json"
    gang.save(10, skip=(2, 3), name=second)
    gang.until(lambda: (save := gang.nodes[1].reporter.asked()) and save.unit == "epoch-1-step-10", "question")
    time.sleep(0.4)
    for rank in (2, 3):
        gang.nodes[1].save(rank, 10, name=second)
    gang.until(lambda: gang.committed() == [30, 10], "commit of the second epoch")


@pytest.mark.parametrize(
    ("first", "second", "begins_anew"),
    [
        ((30,), (10, 20, 30), "node-1"),
        ((20,), (30,), "the first node"),
        ((10, 20, 30), (10, 20, 30), ""),
    ],
)
def test_nodes_that_resume_at_different_steps_have_no_commit_of_both(
    cluster: Callable[..., Cluster], first: tuple[int, ...], second: tuple[int, ...], begins_anew: str
) -> None:
    """A rank that reads what another node's rank wrote begins anew where each node gets its own files back."""
    gang = cluster(**EVERY)
    gang.begin()
    gang.save(20)
    gang.until(lambda: gang.committed() == [20], "commit")
    gang.begin()
    for step in first:
        gang.save(step, skip=(2, 3))
    for step in second:
        gang.save(step, skip=(0, 1))
    if not begins_anew:
        gang.until(lambda: 30 in gang.committed(), "commit after the restore")
        return
    gang.until(gang.nodes[1].reporter.failed, "refusal")
    told: list[Trouble] = []
    gang.until(lambda: told.extend(each.error for each in gang.channel.drain() if each.error) or told, "report of it")
    error = told[0]
    assert error.cause == "checkpoint_mismatch"
    assert f"the ranks of {begins_anew} wrote" in error.message
    assert 'checkpoint.reshard = "all"' in error.message
    assert gang.committed() == [20]


@pytest.mark.parametrize("first", [True, False])
def test_a_file_that_only_one_node_leaves_as_it_was_restored_is_no_mixture(
    cluster: Callable[..., Cluster], first: bool
) -> None:
    """A script that saves at once what it resumed from, and writes its settings where they are not there yet."""
    gang = cluster(**EVERY)
    gang.begin()
    node = gang.nodes[0 if first else 1]
    node.ranks[0].write(node.folder / "checkpoint-20/settings.json", "{}")
    gang.save(20)
    gang.until(lambda: gang.committed() == [20], "commit")
    gang.begin()
    gang.save(20)
    gang.save(30)
    gang.until(lambda: 30 in gang.committed() or any(node.reporter.failed() for node in gang.nodes), "commit")
    assert gang.committed()[-1] == 30


def test_a_checkpoint_that_only_one_node_makes_of_a_step_before_is_no_mixture(cluster: Callable[..., Cluster]) -> None:
    """As the best model, which rank 0 writes after an evaluation of what was restored."""
    gang = cluster(checkpoint_writers="every", checkpoint_timeout_seconds=1)
    gang.begin()
    gang.save(20)
    gang.until(lambda: gang.committed() == [20], "commit")
    gang.begin()
    gang.save(20, skip=(2, 3), name="best-step-{step}/rank{rank}.json")
    gang.save(30)
    gang.until(lambda: 30 in gang.committed() or any(node.reporter.failed() for node in gang.nodes), "commit")
    assert gang.committed()[-1] == 30
