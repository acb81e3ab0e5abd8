"""Runs from outside: exit codes, outputs, events, processes."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store import open_store
from argosy.steps.store.allowed import allowed_until_now
from argosy.steps.store.leaving import UNWRITTEN
from tests.s3.faults import nothing
from tests.s3.server import S3Server

if TYPE_CHECKING:
    from conftest import Rig


def test_a_run_that_goes_well(rig: Rig) -> None:
    assert rig.run() == 0, rig.log()
    assert len(rig.output("checkpoint-digest")) == 64
    assert json.loads(rig.output("verdict"))["step"] == 12
    assert rig.processes() == set()
    assert [event.fields["nnodes"] for event in rig.events("gang_created")] == [2]
    assert (rig.folder / "step/progress").exists() is False


def test_a_killed_rank_resumes_in_place_from_the_last_checkpoint(rig: Rig) -> None:
    rig.inject = ("kill:rank=1@step=8",)
    assert rig.run() == 0, rig.log()
    first, second = (sorted({a["restart"]: a for a in rig.assignments()}.items()))[:2]
    assert second[1]["resume_step"] == 6
    assert second[1]["generation"] == first[1]["generation"] + 1
    ended = rig.events("restart_ended")[0].fields
    assert (ended["cause"], ended["signal"], ended["rank"]) == ("unknown", 9, 1)
    assert len(rig.events("gang_created")) == 1
    assert len(rig.events("injected")) == 1


def test_segv_runs_elsewhere_next(rig: Rig) -> None:
    rig.inject = ("segv:rank=1@step=8",)
    assert rig.run() == 0, rig.log()
    gangs = [event.fields for event in rig.events("gang_created")]
    assert [gang["excluded"] for gang in gangs] == [[], ["node-1"]]
    assert {a["node"] for a in rig.assignments() if a["attempt"] == 2} == {"node-0", "node-2"}
    assert rig.events("restart_ended")[0].fields["cause"] == "native_crash"


@pytest.mark.parametrize(
    ("fault", "used"),
    [("preempt:node=1@step=5", {"node-0", "node-1"}), ("node-loss:node=1@step=5", {"node-0", "node-2"})],
)
def test_a_node_that_goes_is_no_failure_of_the_run(rig: Rig, fault: str, used: set[str]) -> None:
    rig.inject = (fault,)
    rig.options = {"max_restarts": 0}
    assert rig.run() == 0, rig.log()
    assert rig.events("restart_ended")[0].fields["cause"] == "preempted_evicted"
    assert {a["node"] for a in rig.assignments() if a["attempt"] == 2} == used
    assert {a["resume_step"] for a in rig.assignments() if a["attempt"] == 2} <= {3, 6, 9}


def test_a_pod_that_says_sigterm_before_its_host_was_asked_again_was_evicted(rig: Rig) -> None:
    # The time for the next look at the host never comes.
    start = f"runpy.run_module({TrainArgs.MODULE!r}, run_name='__main__', alter_sys=True)"
    rarely = "from argosy.steps.supervisor import restart; restart.HOST_SECONDS = 1e9"
    rig.program = ["-c", f"import runpy; {rarely}; {start}"]
    rig.plan["says_sigterm"] = True
    rig.inject = ("preempt:node=1@step=5",)
    assert rig.run() == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["preempted_evicted"]


def test_a_node_that_goes_by_the_clock(rig: Rig) -> None:
    rig.inject = ("node-loss:node=1@seconds=1",)
    rig.plan["step_seconds"] = 0.3
    assert rig.run() == 0, rig.log()
    assert len(rig.events("injected")) == 1
    assert rig.events("restart_ended")[0].fields["cause"] == "preempted_evicted"


def test_a_hang_is_noticed_and_named(rig: Rig) -> None:
    rig.inject = ("hang:rank=1@step=8",)
    rig.options = {"hang_timeout_seconds": 1}
    assert rig.run() == 0, rig.log()
    ended = rig.events("restart_ended")[0].fields
    assert (ended["cause"], ended["last_step"]) == ("hang", 8)


def test_a_corrupt_shard_is_put_aside_and_the_one_before_is_used(rig: Rig) -> None:
    rig.inject = ("corrupt-shard@step=8",)
    assert rig.run() == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["unknown", "checkpoint_corrupt"]
    assert len(rig.events("injected")) == 1
    assert [a["resume_step"] for a in rig.assignments() if a["pod"].endswith("-0")] == [0, 6, 3]
    assert len(CheckpointStore(open_store(rig.plan["store"]), "r/runs/r-abc").quarantined()) == 1


def test_an_exception_before_the_first_step_is_final(rig: Rig) -> None:
    rig.plan |= {"steps": 0, "faults": []}
    rig.plan["raise_at_start"] = True
    assert rig.run() == 70, rig.log()
    assert len(rig.assignments()) == 2
    verdict = json.loads((rig.folder / "step/dev/termination-log").read_text())
    assert verdict["cause"] == "user_exception"


def test_the_same_exception_twice_is_confirmed_and_final(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "exception", "times": 9}]
    assert rig.run() == 70, rig.log()
    assert len(rig.events("restart_ended")) == 2
    assert re.search(r"; stop: .* \(exit code 70\)$", rig.log(), re.M)


def test_an_exit_code_of_the_user_has_the_class_it_was_given(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "exit 3", "times": 9}]
    rig.options = {"exit_code_map": json.dumps({"3": 77})}
    assert rig.run() == 77, rig.log()
    assert len(rig.events("restart_ended")) == 1


def test_budgets_end_a_run_without_progress(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 8, "how": "kill", "times": 99}]
    rig.options = {"max_restarts": 9, "max_same_failure": 1}
    assert rig.run() == 74, rig.log()
    assert len(rig.events("restart_ended")) == 2


def test_all_ranks_ended_well_without_a_final_checkpoint(rig: Rig) -> None:
    rig.plan["final"] = False
    assert rig.run() == 70, rig.log()
    assert "none was saved after they had ended" in rig.events("restart_ended")[0].fields["quote"]
    assert json.loads(rig.output("verdict"))["cause"] == "finished_without_checkpoint"


def test_the_declared_end_counts_instead_of_final(rig: Rig) -> None:
    rig.plan["final"] = False
    rig.options = {"end_step": 12}
    assert rig.run() == 0, rig.log()
    assert (rig.folder / "step/progress").read_text() == "12/12"


def test_a_node_that_never_comes_is_named(rig: Rig) -> None:
    rig.plan["away"] = [1]
    rig.options = {"check_in_timeout_seconds": 1, "max_restarts": 0}
    assert rig.run() == 74, rig.log()
    ended = rig.events("restart_ended")[0].fields
    assert (ended["cause"], ended["node"]) == ("rendezvous_timeout", "node-1")
    assert "node-1" in ended["quote"]
    assert [event.fields["missing"] for event in rig.events("checked_in")] == [["node-1"]]
    assert not (Path(rig.plan["shared"]) / "assignments").exists(), "a rank started without all nodes"


def test_the_same_missing_node_twice_is_excluded(rig: Rig) -> None:
    rig.plan["away_nodes"] = ["node-1"]
    rig.options = {"check_in_timeout_seconds": 1}
    assert rig.run() == 0, rig.log()
    assert [event.fields["node"] for event in rig.events("node_excluded")] == ["node-1"]
    assert {a["node"] for a in rig.assignments()} == {"node-0", "node-2"}


def test_a_killed_supervisor_is_followed_by_one_that_adopts_the_gang(rig: Rig) -> None:
    rig.plan |= {"steps": 60, "commit_every": 20}
    rig.inject = ("supervisor-kill@step=10",)
    assert rig.run() == -signal.SIGKILL
    seen = max(rig.steps(1))
    rig.until(lambda: max(rig.steps(1)) > seen + 3)  # ranks train on without a supervisor
    assert rig.run() == 0, rig.log()
    assert rig.steps(1) == list(range(1, 61)), "a step was trained twice"
    assert len(rig.events("gang_created")) == 1
    assert rig.processes() == set()


def test_a_rank_that_dies_without_a_supervisor_keeps_its_evidence(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 10, "how": "exception"}]
    rig.inject = ("supervisor-kill@step=4",)
    assert rig.run() == -signal.SIGKILL
    rig.until(lambda: max(rig.steps(1)) == 10)
    assert rig.run() == 0, rig.log()
    ended = rig.events("restart_ended")[0].fields
    assert (ended["cause"], ended["rank"]) == ("user_exception", 1)
    assert "the plan wants it" in ended["quote"]


def test_sigterm_ends_the_gang_and_leaves_nothing(rig: Rig) -> None:
    rig.plan["steps"] = 10_000
    process = rig.start()
    rig.until(lambda: rig.events("step"))
    heard = rig.events("step")[-1].fields["step"]
    process.terminate()
    assert process.wait(20) == 76, rig.log()
    told = json.loads((rig.folder / "step/dev/termination-log").read_text())
    assert (told["cause"], heard <= told["step"] <= max(rig.steps(1))) == ("sigterm", True), told
    assert rig.processes() == set()
    assert rig.events("gang_deleted")[0].fields["reason"] == "stopped from outside"
    rig.plan["steps"] = told["step"] + 12
    assert rig.run() == 0, rig.log()
    assert {a["attempt"] for a in rig.assignments()} == {1, 2}


def test_an_evicted_supervisor_leaves_its_gang_to_the_next(rig: Rig) -> None:
    """Whoever drained the node of a supervisor had its gang stopped and made anew, on all of its nodes."""
    rig.plan["steps"], rig.late = 200, [[[0, "evicted", 99]]]
    process = rig.start()
    rig.until(lambda: rig.steps(1))
    process.terminate()
    assert process.wait(20) == 76, rig.log()
    assert json.loads((rig.folder / "step/dev/termination-log").read_text())["cause"] == "preempted_evicted"
    assert rig.events("gang_deleted") == []
    assert rig.events("train_ended") == []
    rig.late = None
    assert rig.run() == 0, rig.log()
    assert {(each["attempt"], each["restart"]) for each in rig.assignments()} == {(1, 0)}


def test_sigterm_is_obeyed_while_the_store_is_away(rig: Rig) -> None:
    """The ledger was asked for three minutes before that, and a cluster kills the pod long before."""
    with S3Server(("lake",)) as server:
        keys = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1", "ENDPOINT_URL": server.endpoint}
        rig.environ = {f"AWS_{name}": value for name, value in keys.items()}
        rig.plan |= {"steps": 10_000, "store": "s3://lake/store"}
        process = rig.start()
        rig.until(lambda: len(rig.steps(1)) > 3)
        server.plan = lambda _: "slow-down"
        process.terminate()
        assert process.wait(30) == 76, rig.log()
        assert rig.processes() == set()
        assert UNWRITTEN in rig.log()
        assert json.loads((rig.folder / "step/dev/termination-log").read_text())["cause"] == "sigterm"
        server.plan, rig.plan["steps"] = nothing, 12
        assert rig.run() == 0, rig.log()


SAVING = """import pathlib, time
out = pathlib.Path("out")
out.mkdir(exist_ok=True)
for step in range(1, 1000):
    print(f"step {step} loss 1", flush=True)
    (out / "part").write_text(str(step))
    (out / "part").replace(out / "state.txt")
    time.sleep(0.5)
"""


FORGETFUL = """import os, pathlib, sys, time
starts = len(list(pathlib.Path(sys.argv[1]).glob("start-*")))
(pathlib.Path(sys.argv[1]) / f"start-{starts}").touch()
os.makedirs("out", exist_ok=True)
for step in range(1, 4 + starts):
    print(f"step {step} loss 1", flush=True)
    with open("out/part", "w") as target:
        target.write(str(min(step, 3)))
    os.replace("out/part", "out/state.txt")
    time.sleep(0.8)
os._exit(9 if starts < 6 else 0)
"""


def test_a_script_that_reads_nothing_back_is_not_restarted_for_ever(rig: Rig) -> None:
    """Each start made new saves, of what the run had had before, and died a step later than the one before."""
    rig.nnodes = 1
    rig.trains(FORGETFUL, rig.plan["shared"], include=["state.txt"], launcher="plain")
    assert rig.run(90) == 74, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["unknown"] * 3, rig.log()


@pytest.mark.variant  # real pods, and a store that is given up twice: ten seconds
def test_a_pod_that_is_stopped_waits_for_no_commit(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stood in one for as long as a save waits for the store, and was killed there after its grace and 30 s more."""
    with S3Server(("lake",)) as server:
        keys = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1", "ENDPOINT_URL": server.endpoint}
        rig.environ = {f"AWS_{name}": value for name, value in keys.items()}
        for name, value in rig.environ.items():
            monkeypatch.setenv(name, value)
        rig.plan["store"] = "s3://lake/store"
        rig.trains(SAVING, include=["state.txt"], launcher="plain")
        process = rig.start()
        rig.until(lambda: rig.events("checkpoint_committed"))
        server.plan = lambda _: "slow-down"
        process.terminate()
        assert process.wait(30) == 76, rig.log()
        logs = [path.read_text() for path in rig.local.rglob("log") if path.is_file()]
        assert sum("what the ranks saved last is not committed" in text for text in logs) == 2, logs


def test_a_claim_of_a_supervisor_that_has_ended_ends_no_run(rig: Rig) -> None:
    """Two that began together ended both: the one that lost the ledger had fenced the ranks of the one that won it."""
    rig.plan |= {"step_seconds": 0.05}
    process = rig.start()
    rig.until(lambda: rig.steps(1))
    CheckpointStore(open_store(rig.plan["store"]), "r/runs/r-abc").claim("another")
    assert process.wait(30) == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["fenced"]
    assert "whoever fenced it has ended: the run is ours" in rig.log()


@pytest.mark.parametrize(("cause", "code"), [(Cause.S3_ACCESS, 75), (Cause.S3_MISSING, 78)])
def test_access_that_was_allowed_until_now_is_worth_another_pod(cause: Cause, code: int) -> None:
    with pytest.raises(StepError) as told, allowed_until_now():
        raise StepError(cause, "403 InvalidAccessKeyId")
    assert (told.value.cause, told.value.code) == (cause, code)


@pytest.mark.variant  # it waits until the event log is given up: twenty seconds
def test_a_store_that_refuses_what_it_allowed_is_tried_by_another_pod(rig: Rig) -> None:
    """Keys that were replaced: this pod never learns of it, and the next one has those of now."""
    rig.plan |= {"steps": 10_000}
    process = rig.start()
    rig.until(lambda: len(rig.steps(1)) > 3)
    store, aside = rig.folder / "store", rig.folder / "aside"
    store.rename(aside)
    store.write_text("no folder: whatever is asked of it is refused")
    assert process.wait(60) == 75, rig.log()
    assert "it was allowed until now" in (rig.folder / "step/dev/termination-log").read_text()
    assert rig.processes() == set()
    store.unlink()
    aside.rename(store)
    rig.plan["steps"] = 12
    assert rig.run() == 0, rig.log()


def test_a_finished_run_started_again_says_so_at_once(rig: Rig) -> None:
    assert rig.run() == 0, rig.log()
    digest = rig.output("checkpoint-digest")
    assert rig.run() == 0, rig.log()
    assert rig.output("checkpoint-digest") == digest
    assert len(rig.events("gang_created")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inject": ("kill:rank=2@step=4",)}, "ranks 0..1"),
        ({"inject": ("node-loss:node=2@step=4",)}, "node-0..node-1"),
        ({"options": {"resume_from": "newest"}}, "64 hex"),
        ({"options": {"args": "--steps 4"}}, "JSON list"),
        ({"options": {"exit_code_map": '{"3": 1}'}}, "70..78"),
        ({"options": {"min_nnodes": 3}}, "min-nnodes"),
    ],
)
def test_wrong_input_is_one_line_and_starts_nothing(rig: Rig, change: dict[str, Any], said: str) -> None:
    for name, value in change.items():
        setattr(rig, name, value)
    assert rig.run() == 2
    assert said in rig.log()
    assert len(rig.log().splitlines()) == 1
    assert not (rig.local / "gangs").exists() or not list((rig.local / "gangs").glob("*/gang.json"))


def test_a_pod_that_refuses_its_arguments_is_not_started_again(rig: Rig) -> None:
    rig.command = ["sh", "-c", "exit 2"]
    assert rig.run() == 78, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["launcher_usage"]


def test_a_checkpoint_that_was_asked_for_and_is_damaged_needs_a_person(rig: Rig) -> None:
    assert rig.run() == 0, rig.log()
    store = CheckpointStore(open_store(rig.plan["store"]), "r/runs/r-abc")
    wanted = store.commits()[0]
    file = wanted.files[0]
    store.store.put(f"{store.prefix}/{file.key}", b"x" * file.size)
    rig.options = {"resume_from": wanted.digest, "workflow_uid": "fedcba9876543210"}
    assert rig.run() == 77, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["checkpoint_corrupt"]
    assert wanted.digest in rig.log()
    assert rig.processes() == set()
