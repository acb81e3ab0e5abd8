"""A folder is the script's: names that no checkpoint has, and paths that nobody can follow, stop no later commit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.completeness import Completeness
from argosy.steps.launch.units import Contents, contents
from tests.launch.nodes import EVERY, Cluster

ONE = {"nnodes": 1, "nproc": 1, "checkpoint_expect": (), "checkpoint_include": ("**/*.json",)}
DEEP = "import os\nfor _ in range(30):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)"

ROTATE = """
import os, shutil
number = 0
while True:
    number += 1
    os.makedirs(f"checkpoint-{number}/a/b")
    open(f"checkpoint-{number}/rank0.json", "w").close()
    shutil.rmtree(f"checkpoint-{number - 3}", ignore_errors=True)
"""


def dig(folder: Path) -> None:
    """Folders in folders, deeper than a path can be long: to look at them is an error."""
    subprocess.run([sys.executable, "-I", "-S", "-c", DEEP], cwd=folder, check=True)


def fill_in(folder: Path) -> None:
    subprocess.run(["rm", "-rf", "d" * 200], cwd=folder, check=True)


def test_a_name_that_no_checkpoint_has(cluster: Callable[..., Cluster], capfd: pytest.CaptureFixture[str]) -> None:
    gang = cluster(**ONE)
    gang.begin()
    gang.save(10, name="checkpoint-{step}/ra\\nk.json")
    said_in(capfd, "checkpoint out/checkpoint-10 not committed: checkpoint file 'checkpoint-10/ra", gang)
    gang.save(20)
    gang.until(lambda: [each.step for each in gang.store.commits()] == [20], "commit of the next one")
    (gang.nodes[0].folder / "log\nfile").write_text("beside the checkpoints")
    (gang.nodes[0].folder / "model.bin").write_text("the result")
    gang.nodes[0].ranks[0].exit()
    gang.nodes[0].saves.finish(final=True)
    newest = gang.store.newest()
    assert newest is not None
    assert [file.path for file in newest.files] == ["checkpoint-20/rank0.json", "model.bin"]
    assert capfd.readouterr().err.count("argosy: 'log\\nfile' in out is not kept") == 1


@pytest.mark.parametrize(
    ("node", "word"),
    [
        (0, "argosy: out cannot be looked at now: File name too long"),
        (1, "checkpoint out/checkpoint-10 not committed: node-1: [Errno 36] File name too long"),
    ],
)
def test_a_path_that_nobody_can_follow(
    cluster: Callable[..., Cluster], capfd: pytest.CaptureFixture[str], node: int, word: str
) -> None:
    gang = cluster(**{**EVERY, "checkpoint_timeout_seconds": 3}, nproc=1, checkpoint_include=("**/*.json",))
    gang.begin()
    dig(gang.nodes[node].folder)
    gang.save(10)
    said_in(capfd, word, gang)
    fill_in(gang.nodes[node].folder)
    gang.save(20)
    gang.until(lambda: 20 in gang.committed(), "commit of the next one")


def test_old_checkpoints_that_are_removed_meanwhile_hide_no_other_one(tmp_path: Path) -> None:
    """Python's glob ends where a folder has gone. At the end of a run, on a folder that nodes share, that failed it."""
    kept = [f"z/{number}/rank0.json" for number in range(3)]
    for name in kept:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}")
    args = LaunchArgs(store_uri="", name="", checkpoint_unit=("z",), checkpoint_expect=("**/rank{rank}.json",))
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ROTATE], cwd=tmp_path) as rotating:
        try:
            for _ in range(300):
                (unit,) = contents(tmp_path, args).units
                assert sorted(unit.files) == kept
                assert Completeness(args, tmp_path, [1]).flaw_at_end(Contents((unit,), {}), unit)
        finally:
            rotating.kill()


@pytest.mark.parametrize("ahead", [0.03, 0.04, 0.05, 0.06])
def test_a_last_file_whose_time_lies_just_ahead_of_the_clock(cluster: Callable[..., Cluster], ahead: float) -> None:
    """It was new once more when that time was reached, and the run had failed: something still wrote to it."""
    gang = cluster(**ONE)
    gang.begin()
    gang.nodes[0].ranks[0].exit()
    path = gang.nodes[0].folder / "checkpoint-10/a.json"
    path.parent.mkdir()
    path.write_text('{"step": 10}')
    os.utime(path, (time.time() + ahead, time.time() + ahead))
    gang.nodes[0].saves.finish(final=True)
    assert [(each.step, each.final) for each in gang.store.commits()] == [(10, True)]


def said_in(capfd: pytest.CaptureFixture[str], word: str, gang: Cluster) -> None:
    """Wait until it was said."""
    said: list[str] = []
    gang.until(lambda: said.append(capfd.readouterr().err) or word in "".join(said), f"line: {word}")  # type: ignore[func-returns-value]
