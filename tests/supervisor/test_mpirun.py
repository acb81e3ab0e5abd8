"""Launcher mpirun: ranks of two nodes meet over MPI, are numbered, log in their own pods, and go on after a kill."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Rig

SCRIPT = """
import json, os, pathlib, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
told = [os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")]
pathlib.Path("out").mkdir(exist_ok=True)
state = pathlib.Path("out/state.json")
done = world.bcast(json.loads(state.read_text()) if state.exists() else 0)
print(f"mpi rank {world.rank} of {world.size} told {told} begins after {done}", flush=True)
for step in range(done + 1, int(sys.argv[1]) + 1):
    total = world.allreduce(world.rank + step)
    if world.rank == 0:
        print(f"step {step} loss {total}", flush=True)
        if step % 5 == 0:
            state.with_suffix(".new").write_text(json.dumps(step))
            state.with_suffix(".new").replace(state)
    world.Barrier()
    __import__("time").sleep(0.1)
"""
VERSIONS = {"beside Python": Path(sys.executable).parent / "mpirun", "of the system": Path("/usr/bin/mpirun")}


def started(rig: Rig, nproc: int, script: str, *args: str, mpirun: Path | None = None) -> None:
    path = [*([] if mpirun is None else [f"PATH={mpirun.parent}:{os.environ['PATH']}"])]
    before = ("env", *path)
    rig.trains(script, *args, launcher="mpirun", nproc_per_node=nproc, include=("state.json",), before=before)


@pytest.mark.parametrize("which", VERSIONS)
@pytest.mark.variant
def test_a_rank_that_is_killed_is_named_and_all_go_on_from_its_checkpoint(rig: Rig, which: str) -> None:
    if importlib.util.find_spec("mpi4py") is None or not VERSIONS[which].exists():
        pytest.skip(f"no Open MPI with mpi4py {which} ({VERSIONS[which]})")
    started(rig, 2, SCRIPT, "30", mpirun=VERSIONS[which])
    rig.inject = ("kill:rank=3@step=15",)
    assert rig.run(100) == 0, rig.log()
    (ended,) = (event.fields for event in rig.events("restart_ended"))
    assert (ended["rank"], ended["signal"]) == (3, 9), rig.log()
    first, second = (event.fields["restored_step"] for event in rig.events("restart_began"))
    assert first == 0 < int(second) < 30
    for node, pod in enumerate(sorted((rig.local / "nodes").glob("*/pods/*/log"))):
        log = pod.read_text()
        for rank in (2 * node, 2 * node + 1):
            said = rf"\[rank {rank}\] mpi rank {rank} of 4 told \['{rank}', '{rank % 2}', '4', '2', '{node}'\] begins"
            assert len(re.findall(rf"{said} after (?:0|{second})\b", log)) == 2, log
        assert f"[rank {2 - 2 * node}]" not in log  # each in the log of its own pod
    assert rig.processes() == set()


@pytest.mark.variant
def test_a_rank_that_hangs_is_named_by_its_stack_though_its_peers_die_of_it(rig: Rig) -> None:
    started(rig, 2, SCRIPT, "30")
    rig.inject = ("hang:rank=2@step=10",)
    rig.options["hang_timeout_seconds"] = 4
    assert rig.run(100) == 0, rig.log()
    (ended,) = (event.fields for event in rig.events("restart_ended"))
    assert (ended["cause"], ended["rank"]) == ("hang", 2), rig.log()
    assert rig.processes() == set()


def test_without_open_mpi_it_says_what_to_install(rig: Rig, tmp_path: Path) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    started(rig, 1, "print('never')")
    assert rig.command is not None
    site = next(path for path in sys.path if path.endswith("site-packages"))
    rig.command[1:2] = [f"PATH={tmp_path}", f"PYTHONPATH={Path(__file__).parents[2]}:{site}", str(python)]
    assert shutil.which("env") is not None
    rig.command[0] = str(shutil.which("env"))
    assert rig.run(60) != 0
    assert "install Open MPI in the image" in rig.log()
