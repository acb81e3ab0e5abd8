"""A rank that the others wait for in step after step is named, and moved away where that is wanted; no other is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.steps.arrivals import worked
from argosy.steps.record.building import build_record
from argosy.steps.record.meaning import meaning
from argosy.steps.supervisor.slowness import Slowness, SlowRank
from tests.supervisor.test_stalls import STEPS, TAILS

if TYPE_CHECKING:
    from conftest import Rig


def told(world: int, steps: int, seconds: list[list[float]], *, own: bool = True) -> list[SlowRank]:
    """What is said of ranks that work ``seconds[rank][step]`` and meet in every step."""
    slowness, now, found = Slowness(world), 0.0, []
    clocks = [1000.0 * rank for rank in range(world)]  # no two of them agree
    for step in range(1, steps + 1):
        together = max(each[step - 1] for each in seconds)
        now += together
        for rank in range(world):
            clocks[rank] += together if own else seconds[rank][step - 1]
            record = {"rank": rank, "step": step, "time": clocks[rank] + 1.0}
            found += slowness.step(record | ({"own": seconds[rank][step - 1]} if own else {}), now)
    return found


@pytest.mark.parametrize("own", [True, False], ids=["own work", "whole steps"])
@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("world", [2, 4, 8])
def test_steps_with_heavy_tails_raise_no_alarm(tail, world: int, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """120,000 steps in all; windows follow each other without the pause that they have in truth."""
    monkeypatch.setattr("argosy.steps.supervisor.slowness.WINDOW_SECONDS", 0.0)
    dice, steps = random.Random(f"slow/{world}"), STEPS // 15
    seconds = [[tail(dice) for _ in range(steps)] for _ in range(world)]
    assert told(world, steps, seconds, own=own) == []


@pytest.mark.parametrize("world", [2, 3, 8])
@pytest.mark.parametrize("slow", ["first", "last"])
@pytest.mark.parametrize("seed", range(5))
def test_half_as_slow_again_is_named(world: int, slow: str, seed: int) -> None:
    dice = random.Random(f"named/{seed}")
    culprit = 0 if slow == "first" else world - 1
    seconds = [
        [(1.5 if rank == culprit else 1.0) * dice.uniform(0.85, 1.15) for _ in range(300)] for rank in range(world)
    ]
    (found,) = told(world, 300, seconds)
    assert found.rank == culprit
    assert 80 <= found.step <= 150, found
    assert 1.3 < found.seconds / found.others < 1.7


def test_ranks_of_different_work_are_not_slow() -> None:
    """A pipeline whose stages are not alike: half of the ranks have a third more to do."""
    dice = random.Random(3)
    seconds = [[(1.35 if rank >= 4 else 1.0) * dice.uniform(0.95, 1.05) for _ in range(500)] for rank in range(8)]
    assert told(8, 500, seconds) == []


def test_what_costs_nobody_anything_is_not_told() -> None:
    """Twice as long as the others until the first collective, where the step takes fifty times as long."""
    slowness, found = Slowness(2), []
    for step in range(1, 400):
        for rank in range(2):
            found += slowness.worked(rank, [(step, 0.01 * (1 + rank), 0.5)], step * 0.5)
    assert found == []


def test_who_is_slow_again_is_told_again() -> None:
    seconds = [[1.0] * 600, [1.5] * 200 + [1.0] * 200 + [1.5] * 200]
    assert [each.step // 200 for each in told(2, 600, seconds)] == [0, 2]


def test_work_is_what_lies_before_the_first_collective() -> None:
    second = 10**9
    steps = [(4, 10 * second), (5, 12 * second), (6, 15 * second), (8, 20 * second)]
    arrivals = [9 * second, int(10.5 * second), 11 * second, 14 * second, 19 * second, 30 * second]
    assert worked(steps, arrivals) == [(5, 0.5, 2.0), (6, 2.0, 3.0)]
    assert worked(steps, arrivals[1:]) == [(6, 2.0, 3.0)]  # the recorder does not reach back to the first


SCRIPT = """
import pathlib, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from argosy import report
from argosy.steps import arrivals
arrivals.LOOK_SECONDS = 1.0
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(20, 20))
calm, steps = int(sys.argv[1]), int(sys.argv[2])
for step in range(1, steps + 1):
    time.sleep(0.05 * (1.6 if dist.get_rank() == 2 and step > calm else 1.0))
    model(torch.randn(4, 20)).sum().backward()
    report(step, loss=1.0 / step, end_step=steps)
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/done").write_text("all of it")
dist.destroy_process_group()
"""
QUICK = """
import sys
from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.outputs import step_main
from argosy.steps.supervisor import slowness
from argosy.steps.train import train
slowness.WINDOW_SECONDS = 1.0
sys.exit(step_main(TrainArgs, train, sys.argv[1:]))
"""


def quick(rig: Rig) -> None:
    (rig.folder / "quick.py").write_text(QUICK)
    rig.program = [str(rig.folder / "quick.py")]


@pytest.mark.torch
def test_torch_tells_who_comes_last_and_while_nobody_does_it_names_nobody(rig: Rig) -> None:
    """Real ranks under torchrun that tell their steps and nothing else; all steps last equally long."""
    calm = 150
    quick(rig)
    rig.trains(SCRIPT, calm, 350, nproc_per_node=3, preload=("torch",), include=("*",))
    rig.nnodes = 1
    rig.options = {"hang_timeout_seconds": 250, "check_in_timeout_seconds": 120}
    assert rig.run(290) == 0, rig.log()
    (found,) = (event.fields for event in rig.events("slow_rank"))
    assert (found["rank"], found["node"]) == (2, "node-0")
    assert found["step"] > calm


@pytest.mark.parametrize("spares", [0, pytest.param(1, marks=pytest.mark.variant)])
def test_it_is_moved_away_once_where_there_is_room(rig: Rig, spares: int) -> None:
    quick(rig)
    rig.spares = spares
    rig.plan |= {"steps": 250, "step_seconds": 0.08, "own": {"1": 1.8}, "commit_every": 50}
    rig.options = {"act_on_slow_rank": True}
    assert rig.run(120) == 0, rig.log()
    (ended,) = rig.events("restart_ended")
    assert (ended.fields["cause"], ended.fields["rank"]) == ("nccl_timeout", 1)
    assert "times as long as the others" in ended.fields["quote"]
    record = build_record([*rig.events("restart_began"), ended], {"name": "w"})
    assert meaning(record, 0).startswith("No collective timed out: the others waited for this rank")
    (excluded,) = rig.events("node_excluded")
    assert next(event.fields["node"] for event in rig.events("slow_rank")) == excluded.fields["node"]
    assert len(rig.events("took_over")) == spares
    assert len(rig.events("gang_created")) == 2 - spares
    # On its new node rank 1 is as slow: it has more to do, and is only named.
    assert [event.fields["rank"] for event in rig.events("slow_rank")] == [1, 1]


@pytest.mark.variant
def test_two_thousand_real_steps_with_jitter_name_nobody_and_raise_no_alarm(rig: Rig) -> None:
    quick(rig)
    rig.options = {"act_on_stall": True, "stall_seconds": 2}
    rig.plan |= {"steps": 2000, "step_seconds": 0.005, "jitter": 20.0, "own": {}, "commit_every": 100}
    assert rig.run(280) == 0, rig.log()
    assert rig.events("slow_rank") == rig.events("stalled") == rig.events("restart_ended") == []
    assert Path(rig.plan["shared"], "steps-1").exists()
