"""A script without torch, by the real command line: real XGBoost, killed once, ends with the model of nobody's kill."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.store import open_store
from tests.examples.boosted import EXAMPLE, boosted

ROWS = ["--rows", "1000000", "--rounds", "60"]
"""A round takes longer than a checkpoint, and those after the kill longer than rank 1 needs to hear of it."""
ARGOSY = str(Path(sys.executable).parent / "argosy")


@pytest.mark.variant
def test_a_killed_rank_costs_no_bit_of_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".argosy", "__pycache__"))
    description = folder / "run.toml"
    description.write_text(f"args = {json.dumps(ROWS)}\n" + description.read_text())
    command = [ARGOSY, "run", "run.toml", "--json", "--inject", "kill:rank=1@step=15"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    told = json.loads(done.stdout)
    first, second = told["attempts"]
    assert first["signal"] == 9
    assert second["restored_step"] >= 10, "it began anew"
    store = open_store(f"file://{folder}/.argosy/volumes/argosy/store")
    newest = CheckpointStore(store, f"xgboost/runs/{told['run_id']}").newest()
    assert newest is not None
    assert (newest.step, newest.final) == (60, True)
    (model,) = newest.files
    assert model.sha256 == boosted(tmp_path, 60, *ROWS)
