"""A supervisor killed at a given write: the next one goes on from exactly there, and nobody is charged for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.store import open_store
from argosy.steps.supervisor.ledger import Ledger

if TYPE_CHECKING:
    from conftest import Rig


def causes(rig: Rig) -> list[str]:
    """Of every failure that was charged."""
    ledger = Ledger(open_store(rig.plan["store"]), "r/runs/r-abc", "0123456789abcdef")
    return [str(failure.cause) for failure in ledger.failures()]


FAILURE = r'put \S+/ledger/\S+ .*"kind": "failure"'


@pytest.mark.parametrize(
    "at",
    [r"put \S+/restart-0000\.json", FAILURE, r"record \S+a1/deleted\.json", '"kind": "gang_deleted"', r'gang": \S+a2"'],
)
def test_a_decision_that_was_written_down_is_carried_out(rig: Rig, at: str) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "segv"}]
    rig.run_killed(at)
    assert rig.run(20) == 0, rig.log()
    assert causes(rig) == ["native_crash"]
    assert {(e.fields["attempt"], e.fields["restart"]) for e in rig.events("restart_ended")} == {(1, 0)}
    assert {a["node"] for a in rig.assignments() if a["attempt"] == 2} == {"node-0", "node-2"}, "not elsewhere"
    assert {a["resume_step"] for a in rig.assignments() if a["attempt"] == 2} == {6}
    assert rig.processes() == set()


def test_an_order_to_stop_reaches_pods_that_never_heard_it(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "kill"}]
    rig.run_killed(FAILURE)
    assert rig.run(15) == 0, rig.log()
    assert causes(rig) == ["unknown"]
    assert [(a["attempt"], a["restart"]) for a in rig.assignments()] == [(1, 0), (1, 0), (1, 1), (1, 1)], rig.log()


@pytest.mark.parametrize("at", ['"kind": "skipped"', FAILURE + r'.*"skip": \[\s*9'])
def test_data_that_are_to_be_passed_over_are_although_its_supervisor_was_killed(rig: Rig, at: str) -> None:
    """Written down before the decision, they were taken for passed over in vain, and the run ended (77)."""
    loss = {"index": 1, "step": 8, "how": "say the loss is nan"}
    rig.plan["faults"], rig.options = [{**loss, "times": 2}], {"nan_skip_steps": 2}
    rig.run_killed(at)
    assert rig.run(20) == 0, rig.log()
    assert causes(rig) == ["numerics_nan"] * 2
    assert {a["skip"] for a in rig.assignments()} == {"", "9-10"}


@pytest.mark.parametrize(
    "at", [FAILURE, r'put \S+ .*"kind": "gang_deleted"', r"output checkpoint-uri", r'put \S+ .*"kind": "ended"']
)
def test_a_run_that_was_given_up_is_not_tried_again(rig: Rig, at: str) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "exit 78", "times": 9}]
    rig.run_killed(at)
    if '"ended"' in at:  # all was done: who starts it now wants it tried again
        rig.plan["faults"] = []
        assert rig.run(20) == 0, rig.log()
        return
    assert rig.run(20) == 78, rig.log()
    assert len(rig.assignments()) == 2
    assert json.loads((rig.folder / "step/dev/termination-log").read_text())["exit_code"] == 78
    assert rig.processes() == set()


def test_a_gang_that_was_deleted_unnoted_is_no_training_that_ended(rig: Rig) -> None:
    rig.plan["steps"] = 10_000
    rig.kill_at = r"record \S+a1/deleted\.json"
    process = rig.start()
    rig.until(lambda: max(rig.steps(1), default=0) > 4)
    process.terminate()
    assert process.wait(20) == -9
    rig.kill_at, rig.plan["steps"] = "", 12
    assert rig.run(20) == 0, rig.log()
    assert causes(rig) == []
    assert len(rig.events("gang_created")) == 2


def test_steps_told_to_the_supervisor_before_count_for_the_one_after(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "exception"}]
    rig.run_killed(r"put \S+/restart-0000\.json")
    assert rig.run(20) == 0, "an exception at step 8 was taken for one before the first step: " + rig.log()
    assert [event.fields["last_step"] for event in rig.events("restart_ended")] == [8]


def test_a_final_checkpoint_that_is_damaged_rolls_back(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 0, "step": 12, "how": "damage"}]
    assert rig.run(30) == 0, rig.log()
    assert causes(rig) == ["checkpoint_corrupt"]
    assert {a["resume_step"] for a in rig.assignments()} == {0, 9}


def test_a_run_taken_over_by_another_workflow_leaves_no_pod_of_the_first(rig: Rig) -> None:
    rig.plan["steps"] = 10_000
    process = rig.start()
    rig.until(lambda: max(rig.steps(1), default=0) > 4)
    store = open_store(rig.plan["store"])
    taken = Ledger(store, "r/runs/r-abc", "ffffffffffffffff")
    CheckpointStore(store, "r/runs/r-abc").claim("another workflow's gang")
    assert process.wait(30) == 73, rig.log()
    assert rig.processes() == set()
    taken.append("finished", digest="", step=5)  # what the first wrote at its end ended the other, too


def test_another_supervisor_of_the_same_workflow_finds_the_gang_running(rig: Rig) -> None:
    rig.plan |= {"steps": 400, "commit_every": 1000}
    rig.plan["faults"] = [{"index": 1, "step": 60, "how": "kill"}]
    process = rig.start()
    rig.until(lambda: max(rig.steps(1), default=0) > 4)
    Ledger(open_store(rig.plan["store"]), "r/runs/r-abc", rig.args.workflow_uid)
    assert process.wait(30) == 73, rig.log()
    assert len(rig.processes()) >= 2
