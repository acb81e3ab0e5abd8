"""A loss that becomes NaN, from outside: what was saved since is not gone on from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.starts import argosy

SCRIPT = """
import json, math, os, signal, sys, time
from pathlib import Path
from argosy import skips
out = Path("out"); out.mkdir(exist_ok=True)
saved = sorted(out.glob("step-*.json"), key=lambda path: int(path.stem[5:]))
step, x = json.loads(saved[-1].read_text()) if saved else (0, 0.5)
def save(*_):
    (out / "new").write_text(json.dumps([step, x]))
    (out / "new").rename(out / f"step-{step}.json")
signal.signal(signal.SIGTERM, lambda *_: (save(), sys.exit(143)))
while step < 40:
    time.sleep(0.1)
    step, x = step + 1, x if skips(step + 1) else (x * 1.1 + step) % 17
    wrong = "always" in sys.argv or os.environ["ARGOSY_RESTART"] == "0"
    if step == 20 and wrong and ("whatever" in sys.argv or not skips(step)):
        x = math.nan
    print(f"step {step} loss {x:.6f}", flush=True)
    if step % 10 == 0:
        save()
"""
RUN = """
name = "tiny"
script = "train.py"
args = [{args}]
[gang]
nnodes = 1
launcher = "plain"
[checkpoint]
mode = "opaque"
path = "out"
include = ["step-*.json"]
[retry]
backoff_seconds = 0.1
nan_losses = {most}
nan_skip_steps = {skip}
"""


def ran(folder: Path, args: str = "", most: int = 3, skip: int = 0) -> tuple[int, dict[str, Any], str]:
    """(exit code, what status tells, what explain tells)"""
    (folder / "train.py").write_text(SCRIPT)
    (folder / "run.toml").write_text(RUN.format(args=args, most=most, skip=skip))

    code = argosy(folder, "run", "run.toml").returncode
    return code, json.loads(argosy(folder, "status", "--json").stdout), argosy(folder, "explain").stdout


def test_it_goes_on_from_before_the_last_number(tmp_path: Path) -> None:
    code, told, explained = ran(tmp_path)
    assert (code, told["phase"]) == (0, "Succeeded"), explained
    assert "numerics_nan" in explained
    assert "the loss is nan since step 20; at step 19 it was" in explained
    resumed = int(re.search(r"Attempt 2 began from step (1\d) ", explained)[1])
    reached = int(re.search(r"Attempt 1 .* reached step (\d+)", explained)[1])
    assert f"Lost: {reached - resumed} steps" in explained
    # Also what the script saved when it was stopped is set aside: an end that is no number would be kept.
    kept = argosy(tmp_path, "checkpoint", "get", told["workflow"], "back")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    (last,) = (tmp_path / "back").rglob("step-40.json")
    step, x = json.loads(last.read_text())
    assert (step, x) == (40, pytest.approx(calm_end()))


def calm_end() -> float:
    x = 0.5
    for step in range(40):
        x = (x * 1.1 + step) % 17
    return x


def test_twice_at_the_same_step_a_person_is_needed(tmp_path: Path) -> None:
    code, told, explained = ran(tmp_path, args='"always"')
    assert (code, told["phase"]) == (1, "Failed"), explained
    assert "exit code 77 for numerics_nan" in explained
    assert "numerics_nan twice at step 19: Lower the learning rate or clip gradients" in explained
    # Who runs it again with another learning rate goes on from a number.
    listed = argosy(tmp_path, "checkpoint", "list").stdout
    (newest,) = [line for line in listed.splitlines() if line.endswith("newest")]
    assert int(newest.split()[0]) < 20, listed


def test_where_it_comes_twice_its_data_are_passed_over(tmp_path: Path) -> None:
    code, told, explained = ran(tmp_path, args='"always"', skip=3)
    assert (code, told["phase"]) == (0, "Succeeded"), explained
    assert [each["cause"] for each in told["attempts"]] == ["numerics_nan", "numerics_nan", None]
    assert "The data of steps 20 to 22 were passed over." in explained


@pytest.mark.variant
def test_data_are_passed_over_once(tmp_path: Path) -> None:
    """A loss that is no number whatever the data are is a person's matter."""
    code, told, explained = ran(tmp_path, args='"always", "whatever"', skip=3)
    assert (code, told["phase"], len(told["attempts"])) == (1, "Failed", 3), explained
    assert "exit code 77 for numerics_nan" in explained


@pytest.mark.variant
def test_it_can_be_left_alone(tmp_path: Path) -> None:
    code, told, _ = ran(tmp_path, args='"always"', most=0)
    assert (code, told["phase"], len(told["attempts"])) == (0, "Succeeded", 1)
