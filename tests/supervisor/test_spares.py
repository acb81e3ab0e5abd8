"""Gangs with a spare, from outside: who takes over, who comes in place of the lost pod, what ends and what does not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.stored_manifest import save_manifest
from argosy.steps.pods.pod import adopt
from argosy.steps.store import open_store

if TYPE_CHECKING:
    from conftest import Rig


@pytest.fixture
def spared(rig: Rig) -> Rig:
    rig.spares, rig.plan["last"] = 1, [2]  # who stands by is who comes last
    return rig


def nodes(rig: Rig) -> list[dict[int, str]]:
    """Node of each rank, restart by restart."""
    found: dict[tuple[int, int], dict[int, str]] = {}
    for each in rig.assignments():
        found.setdefault((each["attempt"], each["restart"]), {})[each["node_rank"]] = each["node"]
    return [found[key] for key in sorted(found)]


def took_over(rig: Rig) -> list[dict[str, Any]]:
    return [event.fields for event in rig.events("took_over")]


def test_a_run_that_goes_well_does_not_wait_for_its_spare(spared: Rig) -> None:
    assert spared.run() == 0, spared.log()
    assert nodes(spared) == [{0: "node-0", 1: "node-1"}]
    assert [event.fields["nnodes"] for event in spared.events("gang_created")] == [2]
    assert spared.processes() == set()


@pytest.mark.parametrize(("late", "second"), [([], "node-1"), pytest.param([1], "node-2", marks=pytest.mark.variant)])
def test_the_last_pod_stands_by_unless_another_is_long_in_coming(spared: Rig, late: list[int], second: str) -> None:
    spared.plan["last"] = late
    assert spared.run() == 0, spared.log()
    assert nodes(spared) == [{0: "node-0", 1: second}]


def test_a_spare_that_never_checks_in_keeps_nobody_waiting(spared: Rig) -> None:
    spared.plan["away"] = [2]
    assert spared.run() == 0, spared.log()
    assert spared.processes() == set()


@pytest.mark.parametrize(
    "fault", ["node-loss:node=1@step=5", pytest.param("preempt:node=1@step=5", marks=pytest.mark.variant)]
)
def test_a_spare_takes_the_rank_of_a_node_that_goes(spared: Rig, fault: str) -> None:
    spared.inject, spared.options = (fault,), {"max_restarts": 0}
    spared.plan["steps"] = 30
    assert spared.run() == 0, spared.log()
    first, second = nodes(spared)
    assert (first, second) == ({0: "node-0", 1: "node-1"}, {0: "node-0", 1: "node-2"})
    assert len(spared.events("gang_created")) == 1, "no new gang"
    assert [event.fields["cause"] for event in spared.events("restart_ended")] == ["preempted_evicted"]
    (told,) = took_over(spared)
    assert (told["node_rank"], told["node"], told["from_node"]) == (1, "node-2", "node-1")
    assert {a["resume_step"] for a in spared.assignments() if a["restart"] == 1} <= {3, 6, 9}
    assert spared.events("standing_by")[0].fields["node"] == "node-2"


def test_rank_0_is_taken_over_too(spared: Rig) -> None:
    spared.inject = ("node-loss:node=0@step=5",)
    assert spared.run() == 0, spared.log()
    assert nodes(spared)[1] == {0: "node-2", 1: "node-1"}


def test_another_pod_comes_in_place_of_the_lost_one_and_is_the_next_spare(spared: Rig) -> None:
    # The new spare has eight seconds to come; a loss before that makes another gang.
    spared.inject = ("node-loss:node=1@step=5", "node-loss:node=2@step=90")
    spared.plan |= {"steps": 120, "step_seconds": 0.1}
    assert spared.run() == 0, spared.log()
    assert [each[1] for each in nodes(spared)] == ["node-1", "node-2", "node-3"], spared.log()
    assert len(spared.events("gang_created")) == 1, spared.log()
    assert spared.processes() == set()


def test_an_excluded_node_loses_its_rank_to_the_spare(spared: Rig) -> None:
    spared.plan["faults"] = [{"index": 1, "step": 4, "how": "exit 71", "times": 1}]
    assert spared.run() == 0, spared.log()
    assert nodes(spared) == [{0: "node-0", 1: "node-1"}, {0: "node-0", 1: "node-2"}]
    assert [event.fields["node"] for event in spared.events("node_excluded")] == ["node-1"]
    assert len(spared.events("gang_created")) == 1
    assert spared.processes() == set()


def test_a_rank_that_runs_elsewhere_next_changes_places_with_the_spare(spared: Rig) -> None:
    spared.inject = ("segv:rank=1@step=8",)
    assert spared.run() == 0, spared.log()
    assert nodes(spared)[1] == {0: "node-0", 1: "node-2"}


def test_a_rank_that_ends_on_a_node_that_stays_keeps_it(spared: Rig) -> None:
    spared.inject = ("kill:rank=1@step=8",)
    assert spared.run() == 0, spared.log()
    assert nodes(spared) == [{0: "node-0", 1: "node-1"}] * 2
    assert took_over(spared) == []


def test_a_lost_spare_ends_nothing(spared: Rig) -> None:
    spared.inject = ("node-loss:node=2@step=20",)
    spared.plan |= {"steps": 60, "step_seconds": 0.05}
    assert spared.run() == 0, spared.log()
    assert nodes(spared) == [{0: "node-0", 1: "node-1"}]
    assert not spared.events("restart_ended")
    told = [
        (event.kind, event.fields["node"]) for kind in ("standing_by", "spare_lost") for event in spared.events(kind)
    ]
    assert told.count(("standing_by", "node-2")) == told.count(("spare_lost", "node-2")) == 1


@pytest.mark.variant
def test_two_lost_nodes_at_once_are_one_too_many_for_a_spare(spared: Rig) -> None:
    spared.inject = ("node-loss:node=0@step=5", "node-loss:node=1@step=5")
    spared.plan["step_seconds"] = 0.05
    assert spared.run() == 0, spared.log()
    assert nodes(spared)[-1] == {0: "node-2", 1: "node-3"}
    assert len(spared.events("gang_created")) == 2


def test_too_many_pods_lost_while_their_gang_pauses_are_charged_to_nobody(spared: Rig) -> None:
    """The one that was left was given all ranks: the supervisor ended with a traceback."""
    spared.options = {"backoff_seconds": 12.0}
    spared.plan["faults"] = [{"index": 1, "step": 8, "how": "kill", "times": 2}]
    process = spared.start()
    ended = spared.until(lambda: spared.events("restart_ended")[1:])
    spared.until(lambda: time.time() > ended[0].time + 3)  # in the pause, of 6 to 12 s
    for node in ("node-1", "node-2"):
        (folder,) = (spared.local / f"nodes/{node}/pods").iterdir()
        (folder / "reason.json").write_text('{"reason": "DisruptionTarget"}')
        pod = adopt(folder)
        assert pod is not None
        pod.kill()
    assert process.wait(60) == 0, spared.log()
    causes = [event.fields["cause"] for event in spared.events("restart_ended")]
    assert causes[:2] == ["unknown"] * 2, spared.log()
    assert set(causes[2:]) <= {"preempted_evicted"}, spared.log()


@pytest.mark.parametrize("at", ["failure", "restart"])
def test_a_supervisor_that_is_killed_on_the_way_does_not_lose_the_spare(spared: Rig, at: str) -> None:
    spared.inject = ("node-loss:node=1@step=5",)
    spared.plan["steps"] = 30
    spared.run_killed({"failure": '"kind": "failure"', "restart": '"restart": 1'}[at])
    assert spared.run() == 0, spared.log()
    assert nodes(spared)[-1] == {0: "node-0", 1: "node-2"}
    assert len(spared.events("gang_created")) == 1


SCRIPT = """
import os, pathlib, sys, time
rank, told, out = int(os.environ["RANK"]), pathlib.Path(sys.argv[1]), pathlib.Path("out")
assert (pathlib.Path(os.environ["ARGOSY_DATA_PATH"]) / "one.bin").read_bytes() == b"x" * 1000
(told / f"{os.environ['ARGOSY_RESTART']}-{rank}").touch()
out.mkdir(exist_ok=True)
step = int((out / "step").read_text()) if (out / "step").exists() else 0
while step < 40:
    time.sleep(0.1)
    step += 1
    print(f"step {step} loss 1.0", flush=True)
    (out / "part").write_text(str(step))
    (out / "part").replace(out / "step")
"""


COMES_LAST = 'until [ "$JOB_COMPLETION_INDEX" != 2 ] || [ -e "$0" ]; do sleep 0.1; done; exec "$@"'


def test_a_spare_has_code_and_data_before_it_is_given_a_rank(spared: Rig) -> None:
    data, shared = spared.folder / "data", spared.plan["shared"]
    data.mkdir()
    (data / "one.bin").write_bytes(b"x" * 1000)
    manifest = take_snapshot(f"file://{data}")
    save_manifest(open_store(spared.plan["store"]), "r", manifest)
    comes_last = ("sh", "-c", COMES_LAST, f"{shared}/0-0")
    spared.trains(SCRIPT, shared, launcher="plain", include=("step",), staging="node", before=comes_last)
    spared.options = {"dataset_digest": manifest.digest, "hang_timeout_seconds": 60}
    spared.inject = ("node-loss:node=1@step=20",)
    spared.start()
    spared.until(lambda: any(event.fields["ready"] for event in spared.events("standing_by")))
    pod = spared.local / "nodes/node-2/pods"
    assert list(pod.glob("**/train.py"))
    assert list(pod.glob("**/one.bin"))
    assert spared.process is not None
    assert spared.process.wait(120) == 0, spared.log()
    (told,) = took_over(spared)
    assert (told["node"], told["node_rank"]) == ("node-2", 1)
    assert sorted(path.name for path in Path(spared.plan["shared"]).glob("*-*")) == ["0-0", "0-1", "1-0", "1-1"]
    assert spared.processes() == set()
