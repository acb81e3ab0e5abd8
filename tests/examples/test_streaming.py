"""The streaming example: killed at a step, it goes on with the samples that an uninterrupted run reads there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.data.sampler import position
from argosy.steps.runlog import read_events
from argosy.steps.store import open_store
from argosy.workflows.spec.load import load_run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/streaming"
ARGOSY = str(Path(sys.executable).parent / "argosy")
LINE = re.compile(r"rank (\d) step (\d+) samples ([0-9a-f]{12})")


def hashed(step: int, rank: int) -> str:
    """What the script prints for the samples that the sampler says."""
    from hashlib import sha256

    names = [
        int(f"{number // 20:05}{number % 20:05}")
        for number in position(1, step, samples=60, global_batch=64, rank=rank, world=2)
    ]
    return sha256(str(names).encode()).hexdigest()[:12]


def test_it_loads() -> None:
    run = load_run(EXAMPLE / "run.toml")
    assert run.dataset is not None
    assert run.dataset.staging == "stream"


@pytest.mark.torch
def test_a_killed_run_reads_the_same_samples(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "streaming", ignore=shutil.ignore_patterns(".argosy")))
    description = folder / "run.toml"
    description.write_text(description.read_text().replace("[gang]", '[gang]\npreload = ["torch"]', 1))
    prepare = [sys.executable, "prepare.py", "--archives", "3", "--samples", "20"]
    subprocess.run(prepare, cwd=folder, check=True, capture_output=True)
    # 25 epochs of 60 samples are 24 steps; the last has fewer.
    command = [ARGOSY, "run", "run.toml", "--json", "-p", 'args=["--epochs", "25"]']
    done = subprocess.run(
        [*command, "--inject", "kill:rank=1@step=12"], cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert [attempt["signal"] for attempt in told["attempts"]] == [9, None]
    printed = subprocess.run([ARGOSY, "logs"], cwd=folder, capture_output=True, text=True, check=True).stdout
    lines = [(int(rank), int(step), read) for rank, step, read in LINE.findall(printed)]
    assert {(rank, step) for rank, step, _ in lines} == {(rank, step) for rank in (0, 1) for step in range(1, 25)}
    assert all(read == hashed(step, rank) for rank, step, read in lines if step < 24)
    killed, resumed = told["attempts"]  # the kill comes a little after its step, on a busy machine after the next save
    lost = range(resumed["restored_step"] + 1, killed["last_step"] + 1)
    assert all(sum((rank, step) == (0, each) for rank, step, _ in lines) == 2 for each in lost), "read again"
    assert "of samples," in printed
    (run,) = (folder / ".argosy/volumes").rglob("runs/*/events")
    store = open_store(f"file://{run.parents[2]}")
    events = [event.fields for event in read_events(store, f"runs/{run.parent.name}") if event.kind == "streamed"]
    assert {event["rank"] for event in events} == {0, 1}
    assert all(event["fetched_bytes"] > 0 for event in events)
    assert told["streamed"]["fetched_bytes"] == sum(event["fetched_bytes"] for event in events)
