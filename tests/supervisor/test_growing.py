"""A gang that lost a node goes on with fewer, and is made anew when the node is back: nobody waits for its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.gang.host import Identity
from argosy.steps.gang.manifest import check_manifest
from argosy.steps.gang.probe import probe_job
from argosy.steps.record.building import build_record
from argosy.steps.runlog import read_events
from argosy.steps.store import open_store
from argosy.steps.supervisor.growing import pause_of
from argosy.steps.supervisor.ledger import Ledger
from argosy.workflows.cli.explain import story

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Rig


@pytest.fixture
def shrunk(rig: Rig) -> Rig:
    """Three nodes, of which one is lost at step 4; the gang of two looks every second, and has no end of its own."""
    rig.nnodes = rig.nodes = 3
    rig.inject = ("node-loss:node=2@step=4",)
    rig.options = {"min_nnodes": 2, "grow_seconds": 1, "max_restarts": 1, "max_preemptions": 1}
    rig.plan |= {"steps": 60, "whole": 3, "step_seconds": 0.05}
    return rig


def sizes(rig: Rig) -> list[int]:
    return [event.fields["nnodes"] for event in rig.events("gang_created")]


def back(rig: Rig) -> None:
    (rig.local / "nodes/node-2/lost.json").unlink()


def committed_by(rig: Rig, gang: int) -> bool:
    return any(each["attempt"] == gang for each in rig.assignments()) and len(rig.steps(0)) > 20


def test_it_grows_when_the_node_is_back_and_loses_nothing_that_was_committed(shrunk: Rig) -> None:
    process = shrunk.start()
    shrunk.until(lambda: sizes(shrunk) == [3, 2] and committed_by(shrunk, 2))
    back(shrunk)
    shrunk.until(lambda: sizes(shrunk) == [3, 2, 3])
    assert process.wait(60) == 0, shrunk.log()
    grown = shrunk.events("gang_grows")
    assert [(each.fields["nnodes"], each.fields["to"]) for each in grown] == [(2, 3)]
    assert [each.fields["cause"] for each in shrunk.events("restart_ended")] == ["preempted_evicted"]
    assert [each.fields["cause"] for each in shrunk.events("budget")] == ["preempted_evicted"]  # growing costs nothing
    last = shrunk.assignments()[-1]
    assert last["nnodes"] == 3
    # A commit was fresh: 3 steps, and a look; and what is saved at the stop may be later than the last step heard of.
    assert grown[0].fields["last_step"] - last["resume_step"] <= 60
    store = open_store(shrunk.plan["store"])
    record = build_record(read_events(store, "r/runs/r-abc"), {"name": "r-abc", "phase": "Succeeded"})
    assert [each.grown for each in record.restarts] == [0, 3, 0]
    assert any("Nodes were back" in line and "charged to nothing" in line for line in story(record))


def test_while_no_node_is_back_it_keeps_its_size(shrunk: Rig) -> None:
    shrunk.plan |= {"steps": 100, "whole": 2}
    assert shrunk.run() == 0, shrunk.log()
    assert sizes(shrunk) == [3, 2]
    assert shrunk.events("gang_grows") == []


@pytest.mark.variant
def test_zero_seconds_are_never(shrunk: Rig) -> None:
    shrunk.options["grow_seconds"] = 0
    shrunk.plan["whole"] = 2
    process = shrunk.start()
    shrunk.until(lambda: sizes(shrunk) == [3, 2])
    back(shrunk)
    assert process.wait(60) == 0, shrunk.log()
    assert sizes(shrunk) == [3, 2]


@pytest.mark.parametrize(
    "at",
    [
        r"record .*a2/deleted\.json",
        pytest.param('"kind": ?"grown"', marks=pytest.mark.variant),
        pytest.param(r'"kind": ?"gang",.*"attempt": ?3', marks=pytest.mark.variant),
    ],
)
def test_a_supervisor_that_is_killed_while_it_grows_leaves_a_run_that_grows(shrunk: Rig, at: str) -> None:
    shrunk.kill_at = at
    process = shrunk.start()
    shrunk.until(lambda: sizes(shrunk) == [3, 2] and committed_by(shrunk, 2))
    back(shrunk)
    assert process.wait(60) < 0, shrunk.log()
    shrunk.kill_at = ""
    assert shrunk.run() == 0, shrunk.log()
    assert shrunk.assignments()[-1]["nnodes"] == 3, shrunk.log()
    assert len(shrunk.events("budget")) == 1


def test_nodes_that_others_took_are_looked_for_later_each_time(tmp_path: Path) -> None:
    ledger = Ledger(open_store(f"file://{tmp_path}"), "r", "me")
    args = TrainArgs(store_uri="file:///x", name="r", workflow="w", workflow_uid="me", gang="g", min_nnodes=2)
    args = TrainArgs(**{**vars(args), "grow_seconds": 100})
    seen = []
    for got in (2, 2, 3, 2):  # of three that were promised
        ledger.append("grown", to=3)
        ledger.append("restart", pods={str(number): number for number in range(got)})
        seen.append(pause_of(args, ledger))
    assert seen == [200, 400, 100, 200]


def test_a_probe_goes_where_the_gang_may_and_holds_nothing_of_it() -> None:
    own: dict[str, Any] = {
        "containers": [
            {
                "name": "main",
                "image": "i",
                "command": ["python"],
                "resources": {"limits": {"nvidia.com/gpu": "8"}},
                "env": [{"name": "SECRET", "value": "x"}],
            }
        ],
        "nodeSelector": {"pool": "a"},
        "priorityClassName": "high",
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "rack",
                        "matchLabelKeys": ["argosy.dev/gang"],
                        "labelSelector": {"matchLabels": {"argosy.dev/run": "x"}},
                    }
                ]
            }
        },
        "schedulingGroup": {"podGroupName": "g"},
    }
    job = {"completionMode": "Indexed", "parallelism": 3, "completions": 3, "template": {"spec": own}}
    manifest = check_manifest(
        [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": job}], "here"
    )
    identity = Identity(name="g-a2", attempt=2, nnodes=2, excluded=("bad",), env={"TOKEN": "t"})
    made = probe_job(manifest, identity, "uid", 1)
    pod = made["spec"]["template"]["spec"]
    assert made["spec"]["parallelism"] == 1
    assert pod["nodeSelector"] == {"pool": "a"}
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "topologyKey": "rack",
        "matchLabelKeys": [],
        "labelSelector": {"matchLabels": {"argosy.dev/gang": "g-a2"}},
    }
    assert [each["name"] for each in pod["volumes"]] == ["d"]
    text = json.dumps(made)
    assert '"bad"' in text
    left_out = ("SECRET", "TOKEN", "priorityClassName", "schedulingGroup", "argosy.dev/attempt")
    assert not [word for word in left_out if word in text]
