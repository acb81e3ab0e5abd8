"""Launcher ray: an unmodified script of Ray Train over two nodes, whose workers are killed, raise, and go on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.contract import env
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.pods import processes
from argosy.workflows.spec.load import load_run

if TYPE_CHECKING:
    from conftest import Rig

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="no ray[train]"),
    pytest.mark.timeout(600),
]
EXAMPLE = Path(__file__).parents[2] / "examples/ray-train"
SECONDS = 500
"""Of a run: Ray's parts start slowly where the machine has other work."""

TRAIN = """
import os, sys, time
import torch
import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

def train(config):
    from argosy import Checkpointer, report
    me = ray.train.get_context()
    checkpointer = Checkpointer()
    weight = torch.zeros(2)
    restored = checkpointer.restore({"weight": weight})
    done = restored.step if restored else 0
    print(f"worker {me.get_world_rank()} of {me.get_world_size()} on node {me.get_node_rank()} after {done}")
    for step in range(done + 1, config["steps"] + 1):
        total = torch.ones(2)
        torch.distributed.all_reduce(total)
        weight += total
        if me.get_world_rank() == 1 and step == config["raises"]:
            raise ValueError("the weight is not what it was")
        report(step, loss=1 / step)
        if step % 5 == 0 or step == config["steps"]:
            checkpointer.save(step, {"weight": weight}, final=step == config["steps"])
        time.sleep(0.2)
    assert weight.tolist() == [2.0 * config["steps"]] * 2
    checkpointer.close()

if __name__ == "__main__":
    steps, raises = map(int, sys.argv[1:])
    trainer = TorchTrainer(
        train,
        train_loop_config={"steps": steps, "raises": raises},
        scaling_config=ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
        run_config=RunConfig(storage_path=os.path.abspath("results")),
    )
    trainer.fit()
    print("the driver ends well", flush=True)
"""


def started(rig: Rig, script: str, *words: object, **fields: Any) -> None:
    # Ray would give its workers the least of the machine, which other tests share, and lose patience with them.
    patient = ("RAY_worker_niceness=0", "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S=400")
    rig.trains(script, *words, launcher="ray", before=("env", *patient), **fields)
    rig.options |= {"hang_timeout_seconds": 300, "check_in_timeout_seconds": 60, "heartbeat_timeout_seconds": 60}


def left(rig: Rig) -> list[str]:
    """Processes that still work in a folder of the run: Ray's write over their environment, so no token tells."""
    found = []
    for pid in processes.all_pids():
        with contextlib.suppress(OSError):
            if str(Path(f"/proc/{pid}/cwd").readlink()).startswith(str(rig.folder)):
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
    return found


def logs(rig: Rig) -> list[str]:
    return [path.read_text() for path in sorted((rig.local / "nodes").glob("*/pods/*/log"))]


# A Ray of two nodes starves what runs beside it on two cores; `make test` shows one on the cluster.
@pytest.mark.variant
def test_a_worker_that_is_killed_is_told_of_and_both_nodes_go_on_from_the_checkpoint(rig: Rig) -> None:
    started(rig, TRAIN, 20, 0)
    rig.inject = ("kill:rank=1@step=8",)
    assert rig.run(SECONDS) == 0, (rig.log(), logs(rig))
    (ended,) = (event.fields for event in rig.events("restart_ended"))
    assert (ended["cause"], ended["rank"], ended["node"]) == ("unknown", 1, "node-1"), ended
    assert "a worker of Ray on this node, was the first to end" in ended["quote"]
    first, second = (event.fields["restored_step"] for event in rig.events("restart_began"))
    assert first == 0 < int(second) < 20
    head = logs(rig)[0]
    assert all(f"worker {rank} of 2 on node {rank} after {second}" in head for rank in (0, 1)), head
    assert left(rig) == []


@pytest.mark.variant
def test_what_a_worker_raises_is_what_the_run_ends_with(rig: Rig) -> None:
    started(rig, TRAIN, 20, 1)
    assert rig.run(SECONDS) == 70, (rig.log(), logs(rig))
    for event in rig.events("restart_ended"):
        assert event.fields["cause"] == "user_exception", event
        assert "ValueError: the weight is not what it was" in event.fields["quote"]
    assert left(rig) == []


@pytest.mark.variant
def test_ray_train_finds_its_own_checkpoints_again_below_the_folder_that_is_committed(rig: Rig) -> None:
    rig.nnodes = 1
    told = load_run(EXAMPLE / "run.toml").checkpoint
    fields = {"checkpoint_mode": told.mode, "checkpoint_path": told.path, "checkpoint_include": told.include}
    started(rig, (EXAMPLE / "train.py").read_text(), "--epochs", 20, "--batches", 600, **fields)
    rig.inject = ("kill:rank=0@step=4800",)
    assert rig.run(SECONDS) == 0, (rig.log(), logs(rig))
    (log,) = logs(rig)
    found = re.search(r"worker 1 goes on after epoch (\d+)", log)
    assert found, log
    assert 0 < int(found[1]) < 20
    last = rig.events("checkpoint_committed")[-1].fields
    assert (last["step"], last["step_from"], last["final"]) == (12000, "print", True), last
    assert left(rig) == []


@pytest.mark.variant
def test_nothing_of_ray_outlives_a_launch_that_is_killed(rig: Rig) -> None:
    started(rig, TRAIN, 20, 0)
    rig.start()
    rig.until(lambda: any("worker 1 of 2" in log for log in logs(rig)), SECONDS)
    (launch,) = (pid for pid in rig.processes() if _is_launch_of(pid, "node-1"))
    below = {pid: processes.start_time(pid) for pid in processes.descendants(launch)}
    assert len(below) > 4
    os.kill(launch, signal.SIGKILL)
    rig.until(lambda: not any(began and processes.is_alive(pid, began) for pid, began in below.items()), 20)
    assert rig.process is not None
    assert rig.process.wait(SECONDS) == 0, (rig.log(), logs(rig))
    assert rig.events("restart_ended")[0].fields["node"] == "node-1"
    assert left(rig) == []


def _is_launch_of(pid: int, node: str) -> bool:
    with contextlib.suppress(OSError):
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return LaunchArgs.MODULE.encode() in words and f"{env.NODE_NAME}={node}".encode() in environ
    return False


def test_without_ray_it_says_what_to_install(rig: Rig, tmp_path: Path) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    started(rig, "print('never')")
    assert rig.command is not None
    site = next(path for path in sys.path if path.endswith("site-packages"))
    program = str(shutil.which("env"))
    rig.command[:4] = [program, f"PATH={tmp_path}", f"PYTHONPATH={Path(__file__).parents[2]}:{site}", str(python)]
    assert rig.run(60) != 0
    assert "install ray[train] in the image" in rig.log()
