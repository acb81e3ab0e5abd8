"""The committed descriptions are what argosy takes and what ``argosy init`` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.events.matching import start_reason
from argosy.steps.events.payload import parse_events
from argosy.workflows.spec.load import load_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["stdlib-gpt/run.toml", "stdlib-gpt/bad.toml", "ddp-plain/run.toml"])
def test_it_loads(name: str) -> None:
    assert load_run(EXAMPLES / name).name == Path(name).parent.name


def test_the_bad_run_differs_in_its_training_only() -> None:
    good, bad = (load_run(EXAMPLES / "stdlib-gpt" / name) for name in ("run.toml", "bad.toml"))
    assert good.args != bad.args
    assert (good.evaluation, good.promotion, good.dataset) == (bad.evaluation, bad.promotion, bad.dataset)


def test_the_event_starts_the_run() -> None:
    run = load_run(EXAMPLES / "stdlib-gpt" / "run.toml")
    assert run.dataset is not None
    decision = start_reason(run.dataset.uri, parse_events((EXAMPLES / "stdlib-gpt/event.json").read_bytes()))
    assert decision.start
    assert decision.dataset_uri == run.dataset.uri


@pytest.mark.parametrize(("name", "args"), [("ddp-plain", ["--", "--epochs", "4"]), ("ray-train", [])])
def test_init_writes_the_plain_scripts_description(name: str, args: list[str], tmp_path: Path) -> None:
    committed = (EXAMPLES / name / "run.toml").read_text()
    assert len(committed.splitlines()) <= 15
    folder = tmp_path / name
    folder.mkdir()
    (folder / "train.py").write_bytes((EXAMPLES / name / "train.py").read_bytes())
    command = [Path(sys.executable).parent / "argosy", "init", "train.py", *args]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    assert (folder / "run.toml").read_text() == committed
