"""A pause that a run's own pauses do not explain is seen long before ``hang_seconds``, and nothing else is."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.contract.channel import Ending, Report
from argosy.steps.gang.host import PodState
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.supervisor.pace import FLOOR_SECONDS, LEARNED, TIMES, Pace
from argosy.steps.supervisor.record import Record
from argosy.steps.supervisor.watch import Timeouts, Watch
from tests.s3.faults import nothing
from tests.s3.server import S3Server

if TYPE_CHECKING:
    from conftest import Rig

STEPS = 100_000
TAILS: dict[str, Callable[[random.Random], float]] = {
    "lognormal": lambda dice: dice.lognormvariate(0, 1.5),
    "pareto": lambda dice: dice.paretovariate(3) - 0.9,
    "a pause of the machine in a thousand steps": lambda dice: (
        30.0 if dice.random() < 0.001 else dice.uniform(0.8, 1.2)
    ),
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("seed", range(5))
def test_steps_with_heavy_tails_raise_no_alarm(tail: Callable[[random.Random], float], seed: int) -> None:
    dice, pace, alarms = random.Random(seed), Pace(), []
    for step in range(STEPS):
        seconds = tail(dice) + (20.0 if step % 500 == 499 else 0.0)  # a save
        alarms += [step] if seconds > pace.limit else []
        pace.paused(seconds)
    assert alarms == []


def test_what_is_learned() -> None:
    pace = Pace()
    for _ in range(LEARNED):
        assert pace.limit == float("inf")
        pace.paused(2.0)
    assert pace.limit == FLOOR_SECONDS
    pace.paused(30.0)
    assert pace.limit == TIMES * 30.0


class Told:
    """A watch of two ranks that step together, and its clock."""

    def __init__(self, *, act: bool = False, hang: float = 1800.0) -> None:
        self.now, self.pace, self.timeouts = 1000.0, Pace(), Timeouts(heartbeat=1e9, hang=hang, act_on_stall=act)
        self.restart()

    def restart(self) -> None:
        pods = [PodState(name=f"pod-{index}", index=index, node=f"node-{index}", phase="Running") for index in (0, 1)]
        self.watch = Watch(pods, 1, 0, self.now, self.pace)
        self.step = 0

    def steps(self, count: int, seconds: float) -> None:
        for _ in range(count):
            self.now, self.step = self.now + seconds, self.step + 1
            for rank in (0, 1):
                told = Report(pod=f"pod-{rank}", node=f"node-{rank}", node_rank=rank, restart=0, phase="running",
                              furthest={str(rank): self.step})  # fmt: skip
                self.watch.feed(told, self.now)

    def hangs_after(self, seconds: float) -> bool:
        return self.watch.has_trouble(self.now + seconds, self.timeouts)


def test_steps_that_come_together_in_a_report_are_as_far_apart_as_the_rank_says() -> None:
    """Else the half second between two reports would be the longest pause, and ten times that the limit."""
    told = Told()
    told.pace._floor = 1.0
    for _ in range(30):
        told.now += 0.5
        steps = [{"rank": 0, "step": told.step + each, "time": told.now - 500 + 0.05 * each} for each in range(1, 11)]
        told.step += 10
        report = Report(pod="pod-0", node="node-0", node_rank=0, restart=0, phase="running", steps=steps,
                        furthest={"0": told.step, "1": told.step})  # fmt: skip
        told.watch.feed(report, told.now)
    waited, longest = told.watch.stall(told.now + 1.1) or (0.0, 0.0)
    assert (round(waited, 3), round(longest, 3)) == (1.1, 0.05)
    told.now += 4.0  # a report that is late is known as a pause, for the next may be late too
    told.watch.feed(Report(pod="pod-0", node="node-0", node_rank=0, restart=0, phase="running",
                           steps=[{"rank": 0, "step": told.step + 1, "time": told.now - 500}]), told.now)  # fmt: skip
    assert told.watch.stall(told.now + 30) is None


def test_of_a_script_whose_steps_nobody_reads_the_saves_are_counted() -> None:
    told = Told(hang=8.0)
    for save in ({"step": 30, "step_from": "file"}, {"step": 2, "step_from": "count"}):
        told.watch.feed(Report(pod="pod-0", node="node-0", node_rank=0, restart=0, phase="running",
                               events=[{"kind": "checkpoint_committed", **save}]), told.now)  # fmt: skip
    assert (told.watch.step, told.watch.steps_done) == (30, 2)
    told.watch.see_hang(told.now + 9)
    assert "no further save within 9 s" in told.watch.verdict(told.now + 9, told.timeouts).quote


def test_a_stall_is_told_once_and_again_only_after_it_moved() -> None:
    told = Told()
    told.steps(100, 1.0)
    assert told.watch.stall(told.now + 119) is None
    assert told.watch.stall(told.now + 121) == (121.0, 1.0)
    assert told.watch.stall(told.now + 500) is None
    told.steps(1, 600.0)
    assert told.watch.stall(told.now + 700) is None  # such a pause is known now
    assert not told.hangs_after(1799)
    assert told.hangs_after(1801)


def test_what_waits_for_its_store_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(hang=60.0)
    told.steps(10, 1.0)
    told.watch.excuse(told.now + 300)
    assert not told.hangs_after(359)
    assert told.hangs_after(361)
    with S3Server(("lake",)) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        store = LeavableStore(open_store("s3://lake/store", retry_seconds=0.1), threading.Event())
        with RunLog(store, "r/runs/a", "supervisor") as log:
            record = Record(store, "r/runs/a", log, 1, 0, store)
            assert record.ask_store()
            server.plan = lambda _: "slow-down"
            assert not record.ask_store()
            assert not record.store_answers
            server.plan = nothing
            assert record.ask_store()
            assert record.store_answers


def test_acting_takes_a_stall_for_a_hang_and_a_false_alarm_comes_once() -> None:
    told = Told(act=True)
    told.steps(10, 1.0)
    assert not told.hangs_after(1000)  # too little is known
    told.steps(20, 1.0)
    assert told.hangs_after(121)
    assert not told.hangs_after(119)
    told.now += 121
    told.watch.see_hang(told.now)
    assert told.hangs_after(1)  # and is one, though no pause of 122 seconds will be any more
    told.restart()
    told.steps(5, 1.0)
    assert not told.hangs_after(600)
    assert told.hangs_after(1211)


def test_many_ranks_teach_no_faster_than_one() -> None:
    told = Told()
    told.steps(LEARNED, 130.0)  # the first is no pause: before it lie imports
    assert told.watch.stall(told.now + 1e6) is None
    told.steps(1, 130.0)
    assert told.watch.stall(told.now + 1301) is not None


def test_a_real_hang_is_named_by_the_runs_own_pace(rig: Rig) -> None:
    rig.plan |= {"steps": 150, "step_seconds": 0.05}
    rig.inject = ("hang:rank=1@step=100",)
    rig.options = {"hang_timeout_seconds": 600, "act_on_stall": True, "stall_seconds": 2}
    assert rig.run(200) == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["hang"]
    assert rig.events("restart_ended")[0].fields["last_step"] == 100
    (stall,) = rig.events("stalled")
    assert stall.fields["step"] == 100
    assert stall.fields["seconds"] >= 2
    # The ranks had been ended for their stacks, and the next start waited until ten times as long had passed.
    assert rig.events("restart_ended")[0].time - stall.time < 15


def test_the_pace_of_steps_says_nothing_of_the_time_before_the_first_one() -> None:
    told = Told(act=True)
    told.pace = Pace(2.0)
    told.restart()
    told.steps(LEARNED + 1, 0.1)
    assert told.watch.stall(told.now + 3) is not None
    assert told.hangs_after(3)
    told.restart()
    assert told.watch.stall(told.now + FLOOR_SECONDS - 1) is None
    assert told.watch.stall(told.now + FLOOR_SECONDS + 1) is not None


def test_a_node_that_is_lost_with_the_end_it_has_to_commit_is_no_wait_for_ever() -> None:
    pods = [PodState(name=f"p{index}", index=index, node=f"n{index}", phase="Running") for index in (0, 1)]
    watch, timeouts = Watch(pods, 1, 0, 0.0), Timeouts(heartbeat=60.0, hang=0.0)

    def report(index: int, now: float, **given: Any) -> None:
        told = Report(pod=f"p{index}", node=f"n{index}", node_rank=index, restart=0, phase="finished", **given)
        watch.feed(told, now)

    report(0, 1.0, end="unchanged")
    report(1, 1.0, uncommitted="out/model")
    assert watch.holder == 1
    for now in (30.0, 62.0):
        report(0, now, end="unchanged")
        assert watch.has_trouble(now, timeouts) is (now > 60)
    assert watch.verdict(62.0, timeouts).cause == "preempted_evicted"
    assert watch.verdict(62.0, timeouts).node == "n1"


@pytest.mark.parametrize("said", ["no error", "Broken pipe", "Connection closed by peer [10.0.0.2]:1"])
def test_a_group_that_a_peer_leaves_while_it_forms_waits_for_what_became_of_the_peer(said: str) -> None:
    """It stopped the run (78) though the peer's node had run out of memory."""
    pods = [PodState(name=f"p{index}", index=index, node=f"n{index}", phase="Running") for index in (0, 1)]
    watch, timeouts = Watch(pods, 1, 0, 0.0), Timeouts(heartbeat=60.0, hang=0.0)
    tail = [
        "Traceback (most recent call last):",
        f"RuntimeError: Gloo connectFullMesh failed with [pair.cc:598] {said}",
    ]
    end = Ending(rank=0, time=1.0, exit_code=1, signal=None, stopped=False, tail=tail, pod="p0", node="n0")
    watch.feed(Report(pod="p0", node="n0", node_rank=0, restart=0, phase="failed", endings=[end]), 1.0)
    assert not watch.has_gathered(2.2, 1.0, timeouts)
    watch.see_pods([replace(pods[1], phase="Failed", exit_code=137, reason="OOMKilled", time=2.0)])
    found = watch.verdict(6.0, timeouts)
    assert (found.cause, found.exit_code) == ("host_oom", 75)
