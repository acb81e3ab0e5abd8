"""Spot nodes that are taken away too often: the gangs after that go elsewhere, and everybody is told."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from argosy.steps.record.building import build_record
from argosy.steps.runlog import read_events
from argosy.steps.store import open_store
from argosy.workflows.cli.explain import story
from argosy.workflows.cli.status import lines

if TYPE_CHECKING:
    from conftest import Rig

SPOT = {"label": "spot", "value": "true", "tolerations": [], "preemptions": 2}


def capacities(rig: Rig) -> list[tuple[str, int]]:
    return [(event.fields["capacity"], event.fields["preemptions"]) for event in rig.events("gang_created")]


def test_after_so_many_preemptions_the_gangs_leave_spot_nodes(rig: Rig) -> None:
    # The second neither in one report with the first, which a busy machine sends late, nor too late: 8 s are left.
    rig.plan["steps"] = 500
    rig.inject = ("preempt:node=1@step=4", "preempt:node=0@step=100")
    rig.options = {"spot": json.dumps(SPOT)}
    assert rig.run() == 0, rig.log()
    assert capacities(rig) == [("spot", 0), ("spot", 1), ("on-demand", 2)], rig.log()
    assert [each.fields["cause"] for each in rig.events("restart_ended")] == ["preempted_evicted"] * 2
    record = build_record(read_events(open_store(rig.plan["store"]), "r/runs/r-abc"), {"name": "r-abc"})
    said = "on-demand nodes since gang 3: 2 preemptions on spot nodes"
    assert f"Capacity: {said}." in story(record)
    assert f"  capacity: {said}" in lines(record, time.time())


def test_a_gang_with_a_spare_leaves_spot_nodes_as_soon_as_one_without(rig: Rig) -> None:
    rig.inject, rig.spares = ("preempt:node=1@step=4", "preempt:node=0@step=12"), 1
    rig.plan |= {"steps": 30, "step_seconds": 0.05}
    rig.options = {"spot": json.dumps(SPOT)}
    assert rig.run() == 0, rig.log()
    assert capacities(rig) == [("spot", 0), ("on-demand", 2)]
    assert len(rig.events("took_over")) == 1


def test_other_failures_are_nobody_elses_nodes(rig: Rig) -> None:
    rig.plan["faults"] = [{"index": 1, "step": 4, "how": "segv"}, {"index": 1, "step": 7, "how": "kill"}]
    rig.options = {"spot": json.dumps({**SPOT, "preemptions": 1})}
    assert rig.run() == 0, rig.log()
    assert {each for each, _ in capacities(rig)} == {"spot"}


def test_a_run_that_asked_for_no_spot_nodes_says_nothing_of_them(rig: Rig) -> None:
    assert rig.run() == 0, rig.log()
    assert all("capacity" not in event.fields for event in rig.events("gang_created"))
