"""``argosy chaos``: drawn faults on a script of the user's, from outside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.steps.contract.injection import FAULTS, NODE_FAULTS, check_gang, parse
from argosy.workflows.cli.chaos.plan import MOST_OF_A_RUN, Calm, draw
from tests.starts import argosy

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
SCRIPT = """
import json, os, sys, time
from pathlib import Path
out = Path("out"); out.mkdir(exist_ok=True)
saved = sorted(out.glob("step-*.json"), key=lambda path: int(path.stem[5:]))
step, x = json.loads(saved[-1].read_text()) if saved and "anew" not in sys.argv else (0, 0.0)
while step < 80:
    time.sleep(0.1)
    step, x = step + 1, (x * 1.1 + step) % 17
    if os.environ["RANK"] == "0":
        print(f"step {step} loss {x:.6f}", flush=True)
        if step % 8 == 0:
            (out / "new").write_text(json.dumps([step, x]))
            (out / "new").rename(out / f"step-{step}.json")
"""
RUN = """
name = "tiny"
script = "train.py"
args = [{args}]
[gang]
nnodes = 2
launcher = "plain"
[checkpoint]
mode = "opaque"
path = "out"
include = ["step-*.json"]
[evaluation]
script = "train.py"
metric = "none"
direction = "min"
[promotion]
pointer = "production"
"""


SILENT = """
import os
from pathlib import Path
if os.environ["RANK"] == "0":
    Path("out").mkdir(exist_ok=True)
    Path("out/step-8.json").write_text("{}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return described(tmp_path)


def described(folder: Path, args: str = "", script: str = SCRIPT) -> Path:
    (folder / "train.py").write_text(script)
    (folder / "run.toml").write_text(RUN.format(args=args))
    return folder


def chaos(folder: Path, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = argosy(folder, "chaos", "run.toml", *words)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def test_each_fault_is_survived_and_blamed_and_the_losses_are_those_of_a_calm_run(folder: Path) -> None:
    words = ("--kills", "3", "--kind", "kill", "--kind", "node-loss", "--kind", "corrupt-shard", "--seed", "3")
    found = json.loads(chaos(folder, *words, "--json").stdout)
    assert (found["faults"], found["survived"], found["last_step"]) == (3, 3, 80)
    assert Counter(parse(each["fault"]).fault for each in found["judged"]) == {
        "kill": 1, "node-loss": 1, "corrupt-shard": 1,
    }  # fmt: skip
    assert all("80 of 80 losses are those of the calm run" in text for text in found["losses"])
    assert found["runs_with_other_losses"] == 0
    assert not list((folder / ".argosy").rglob("*production*"))
    runs = len(list((folder / ".argosy/runs").iterdir()))
    assert json.loads(chaos(folder, *words, "--json").stdout) == found  # all of it has ended: read again
    assert len(list((folder / ".argosy/runs").iterdir())) == runs


@pytest.mark.variant
def test_a_script_that_begins_again_has_survived_nothing(tmp_path: Path) -> None:
    done = chaos(described(tmp_path, args='"anew"'), "--kills", "1", "--kind", "kill", "--seed", "2", expect=1)
    assert "0 of 1 fault survived" in done.stdout
    assert "does not read its checkpoint" in done.stdout
    assert "argosy explain tiny-chaos-" in done.stdout


def test_interrupted_the_same_command_goes_on_and_says_why_losses_differ(folder: Path) -> None:
    described(folder, script=SCRIPT.replace("% 17", "% 17 + (time.time() % 0.01 if saved else 0)"))
    words = [*ARGOSY, "chaos", "run.toml", "--kills", "1", "--kind", "segv"]
    # Also where SIGINT is ignored around us, as in a job in the background of a shell.
    heeds = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=folder, preexec_fn=heeds, **pipes) as begun:  # type: ignore[call-overload]
        for line in begun.stdout:
            if "checkpoint: step" in line:
                begun.send_signal(signal.SIGINT)
                break
        _, said = begun.communicate(timeout=120)
    assert begun.returncode == 130
    assert "--seed 1 goes on" in said
    found = json.loads(chaos(folder, *words[5:], "--json").stdout)
    assert (found["seed"], found["survived"], found["last_step"]) == (1, 1, 80)
    assert found["runs_with_other_losses"] == 1
    assert "weights or optimizer state that it does not load" in found["losses"][-1]  # losses do not tell which it is
    assert "no step is lost" not in found["losses"][-1]
    told = chaos(folder, *words[5:], "--seed", "1").stdout
    assert "1 of 1 fault survived, but the losses of 1 of 1 run differ from the calm run's, " in told


def test_what_came_before_any_checkpoint_is_not_told_as_a_resume(tmp_path: Path) -> None:
    script = SCRIPT.replace("step % 8", "step % 80").replace("% 17", "% 17 + time.time() % 0.01")
    done = chaos(described(tmp_path, script=script), "--kills", "1", "--kind", "corrupt-shard")
    assert "no checkpoint to damage yet" in done.stdout
    assert "whether the script reads its own was not seen" in done.stdout
    assert "Losses differ before anything was restored" in done.stdout


def test_a_script_that_prints_no_step_is_told_to(tmp_path: Path) -> None:
    """Its checkpoint tells the step it ended at, but nothing when it came to which."""
    ended = chaos(described(tmp_path, script=SILENT), "--kills", "1", expect=2)
    assert "no step was read from what the script printed, so no fault can be placed; print one" in ended.stderr


def test_a_run_that_ends_before_a_fault_is_seen_is_said_to_be_too_short(tmp_path: Path) -> None:
    """Faults that came too late had not been survived."""
    ended = chaos(described(tmp_path, script=SCRIPT.replace("step < 80", "step < 8")), "--kills", "1", expect=2)
    assert "passed, and it may take 3 s until a fault is seen, so that it would not meet the training" in ended.stderr


def test_what_fails_without_any_fault_is_said(tmp_path: Path) -> None:
    done = chaos(described(tmp_path, script="raise KeyError('no such column')\n"), "--kills", "1", expect=1)
    assert "without any fault the run ended Failed: user_exception" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--kills", "0"], "--kills 0: not a number of faults; write 1 to 1000"),
        (["--seed", "-3"], "--seed -3: names the runs, too; write 0 or more"),
        (["--kind", "flood"], "--kind 'flood': unknown fault; there are kill, exit"),
    ],
)
def test_wrong_use(folder: Path, words: list[str], told: str) -> None:
    done = chaos(folder, *words, expect=2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_compiled_workflow_is_no_description(folder: Path) -> None:
    (folder / "run.yaml").write_text("kind: Workflow\n")
    done = argosy(folder, "chaos", "run.yaml")
    assert (done.returncode, "name the run.toml" in done.stderr) == (2, True)


@given(
    kinds=st.lists(st.sampled_from(FAULTS), min_size=1, unique=True),
    count=st.integers(1, 60),
    steps=st.integers(1, 300),
    commits=st.lists(st.integers(1, 300), max_size=20),
    seconds=st.floats(0, 1000),
    nnodes=st.integers(1, 4),
    nproc=st.integers(1, 3),
    seed=st.integers(),
)
def test_every_plan_can_be_carried_out(
    kinds: list[str], count: int, steps: int, commits: list[int], seconds: float, nnodes: int, nproc: int, seed: int
) -> None:
    calm = Calm(steps, tuple(commits), seconds)
    runs = draw(kinds, count, calm, nnodes, nproc, seed)
    assert runs == draw(kinds, count, calm, nnodes, nproc, seed)
    assert Counter(each.fault for run in runs for each in run) == Counter(kinds[i % len(kinds)] for i in range(count))
    assert runs[0][0].step > calm.stretches[:2][-1][0]
    for run in runs:
        taken = [each.node for each in run if each.fault in NODE_FAULTS]
        at = [each.step for each in run]
        assert len(run) <= MOST_OF_A_RUN
        assert len(taken) == len({*taken})
        assert at == sorted(set(at))
        assert 1 <= at[0] <= at[-1] <= steps
        for each in run:
            check_gang(each, nnodes, nproc)
            assert parse(each.text) == each
