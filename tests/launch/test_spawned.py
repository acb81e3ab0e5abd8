"""Processes that a script spawns have the rank's variables, and none of its open files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.launch.rank_hub import RankHub
from argosy.steps.launch.wire import SHIM, ShimSettings

RANK = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)  # closes what is open, as multiprocessing's spawn does
"""
REPORTS = """
import argosy
files = [open(f"weights-{n}", "wb") for n in range(64)]
argosy.report(1, loss=0.5)
"""
SAVES = """
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.writer import Writer
from argosy.steps.store import open_store
import os
Writer(CheckpointStore(open_store(f"file://{os.getcwd()}/store"), "run"), {}, process=True).close()
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RankHub]:
    records: list[dict[str, Any]] = []
    made = RankHub(tmp_path / "ranks", records.append)
    yield made
    made.close()


def run(folder: Path, code: str) -> None:
    settings = ShimSettings(folder=str(folder / "ranks"), pod="pod-0", node="node-0").to_json()
    shim = [sys.executable, "-P", "-m", "argosy.steps.launch.rank", "--", sys.executable, "-c", RANK, code]
    subprocess.run(shim, env={**os.environ, SHIM: settings, "PYTHONPATH": os.pathsep.join(sys.path)},
                   cwd=folder, check=True)  # fmt: skip


@pytest.mark.usefixtures("hub")
def test_what_a_spawned_process_reports_is_not_written_into_a_file_of_the_scripts(tmp_path: Path) -> None:
    run(tmp_path, REPORTS)
    assert {path.stat().st_size for path in tmp_path.glob("weights-*")} == {0}


@pytest.mark.usefixtures("hub")
def test_a_spawned_process_saves_without_the_ranks_pipe(tmp_path: Path) -> None:
    run(tmp_path, SAVES)
