"""Runs from Python, as a notebook makes them: in a thread that gets no signals, and found again by another process."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.steps.contract.errors import InputError
from tests import starts

TRAIN = """\
import json, os, sys, time
os.makedirs("out", exist_ok=True)
state = {"step": 0}
if "--resume" in sys.argv:
    state = json.load(open("out/state.json"))
for step in range(state["step"] + 1, int(sys.argv[1]) + 1):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    time.sleep(0.1)
    if step % 5 == 0:
        json.dump({"step": step}, open("out/state.tmp", "w"))
        os.replace("out/state.tmp", "out/state.json")
print("all done")
"""
EVALUATE = """\
import json, os
with open(os.environ["ARGOSY_METRICS_PATH"], "w") as target:
    json.dump({"steps": json.load(open(os.environ["ARGOSY_CHECKPOINT_PATH"] + "/state.json"))["step"]}, target)
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "evaluate.py").write_text(EVALUATE)
    return tmp_path


def described(steps: int, **more: Any) -> argosy.TrainingRun:
    checkpoint = {"mode": "opaque", "path": "out", "include": ["state.json"], "resume_args": ["--resume"]}
    gang = {"launcher": "plain"}
    return argosy.TrainingRun(
        name="gpt", script="train.py", args=[str(steps)], gang=gang, checkpoint=checkpoint, **more
    )


def test_a_run_from_a_thread_is_killed_resumes_and_tells_all_of_itself(work: Path) -> None:
    run = described(20, evaluation={"script": "evaluate.py", "metric": "steps", "direction": "max"})
    with ThreadPoolExecutor(1) as thread:
        handle = thread.submit(run.run, work, inject=["kill:rank=0@step=12"], state_dir=work / ".argosy").result()
    with pytest.raises(TimeoutError):
        handle.wait(0.0)
    assert not handle.done
    assert handle.wait(240) == "Succeeded"
    assert (handle.metric, handle.promoted) == (20.0, True)
    newest = handle.checkpoints()[0]
    assert (newest.step, newest.final) == (20, True)
    assert [path.read_text() for path in handle.get_checkpoint(work / "got")] == ['{"step": 20}']
    assert len(handle.status()["attempts"]) == 2
    assert handle.status()["loss"] == 0.05
    assert any(line.endswith("all done") for line in handle.logs(rank=0))
    logs: Any = handle.logs
    for wrong in ({"rank": -1}, {"rank": "0"}, {"tail": -1}):
        with pytest.raises(InputError, match="a whole number from 0 on"):
            logs(**wrong)
    assert handle.report().read_text().startswith("<!doctype html>")
    called: tuple[tuple[Any, Any, str], ...] = (
        (handle.wait, "5", "timeout = '5'"),
        (argosy.Handle, handle.name, "argosy.find"),
        (argosy.find, 5, "name = 5"),
        (lambda step: handle.get_checkpoint(work / "no", step), 7, "^checkpoint = '7': no such checkpoint"),
        (handle.get_checkpoint, work / "train.py", "^folder = .*train.py: is a file"),
        (handle.report, "/proc/none/a.html", "^path = /proc/none/a.html: No such file"),
    )
    for call, given, said in called:
        with pytest.raises(InputError, match=said):
            call(given)
    again = argosy.find(handle.name, state_dir=work / ".argosy")
    assert (again.phase, repr(again).startswith("<argosy run gpt-")) == ("Succeeded", True)


def test_it_outlives_who_started_it_is_stopped_and_goes_on(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = (
        "import argosy, signal\n"
        "c = {'mode': 'opaque', 'path': 'out', 'include': ['state.json'], 'resume_args': ['--resume']}\n"
        "g = {'launcher': 'plain'}\n"
        "argosy.TrainingRun(name='gpt', script='train.py', args=['60'], gang=g, checkpoint=c).run()\n"
        "signal.raise_signal(signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=work, check=False)
    assert done.returncode == -signal.SIGKILL
    handle = argosy.find(state_dir=work / ".argosy")
    until = time.monotonic() + 120
    while not handle.checkpoints() and time.monotonic() < until:
        time.sleep(0.2)
    assert "stopped" in handle.stop()
    assert handle.phase == "Interrupted"
    with pytest.raises(argosy.RunFailed, match="was stopped"):
        handle.wait(5)
    described(61).run(work, state_dir=work / ".argosy").stop()
    why = "has other fields, or is another version of argosy's; go on with it"
    assert f"starting anew: the interrupted run {handle.name} {why}" in capfd.readouterr().err
    on = described(60).run(work, state_dir=work / ".argosy")
    assert on.name == handle.name
    assert "starting anew" not in capfd.readouterr().err
    assert on.wait(240) == "Succeeded"
    assert on.checkpoints()[0].step == 60


def test_a_failure_is_raised_with_its_cause_and_its_line(work: Path) -> None:
    (work / "train.py").write_text("import os\nos.makedirs('out', exist_ok=True)\nraise ValueError('no such token')\n")
    handle = described(3).run(work, state_dir=work / ".argosy")
    with pytest.raises(argosy.RunFailed, match="ValueError: no such token") as failed:
        handle.wait(240)
    assert failed.value.cause == "user_exception"
    told = starts.argosy(work, "explain").stdout  # no run.toml describes it
    assert "to go on" not in told  # nothing was saved
    assert "run.toml" not in told


def test_an_evaluation_that_fails_is_the_failure_and_not_what_the_training_went_on_from(work: Path) -> None:
    (work / "evaluate.py").write_text("raise ValueError('no such metric')\n")
    measured = {"script": "evaluate.py", "metric": "steps", "direction": "max"}
    run = described(20, evaluation=measured)
    handle = run.run(work, inject="kill:rank=0@step=12", state_dir=work / ".argosy")
    with pytest.raises(argosy.RunFailed, match=r"the step evaluate failed: .*no such metric") as failed:
        handle.wait(240)
    assert failed.value.cause == "user_exception"
    told = starts.argosy(work, "explain").stdout
    assert f"TrainingRun(...).run(parameters={{'run-id': '{handle.name}'}})" in told


def test_a_run_that_the_gate_refuses_is_no_success(work: Path) -> None:
    measured = {"script": "evaluate.py", "metric": "steps", "direction": "max", "floor": 6}
    handle = described(5, evaluation=measured).run(work, state_dir=work / ".argosy")
    with pytest.raises(argosy.RunFailed, match=r": refused by the gate: steps 5 is not above floor 6$") as failed:
        handle.wait(240)
    assert failed.value.cause == ""
    assert (handle.wait(check=False), handle.refused, handle.promoted) == ("Succeeded", True, False)


def test_a_run_that_is_not_there_is_told_of_in_python(work: Path) -> None:
    with pytest.raises(InputError, match=r"^state_dir = '.*': no run here; start one with TrainingRun\(...\).run\(\)$"):
        argosy.find(state_dir=work)
    (work / "runs" / "gpt-abc12").mkdir(parents=True)
    (work / "runs" / "gpt-abc12" / "state.json").write_text("{}")
    with pytest.raises(InputError, match=r"^name = 'gpt': .* known: gpt-abc12; .* with find\('gpt', namespace=...\)$"):
        argosy.find("gpt", state_dir=work)
    assert argosy.find(state_dir=work).name == "gpt-abc12"


def test_a_description_is_a_key(work: Path) -> None:
    """Its tables hold dicts, which pydantic's own hash says are unhashable."""
    one, other = ({"A": "1", "B": "2"}, {"B": "2", "A": "1"})
    assert described(20, env=one) == described(20, env=other)
    assert {described(20, env=one), described(20, env=other)} == {described(20, env=one)}
    assert len({described(20), described(21), described(20, env=one)}) == 3


def test_the_same_description_gives_the_bytes_of_the_command_line(work: Path) -> None:
    text = 'name = "gpt"\nscript = "train.py"\nargs = ["20"]\n[gang]\nlauncher = "plain"\n[checkpoint]\n'
    (work / "run.toml").write_text(
        text + 'mode = "opaque"\npath = "out"\n' + 'include = ["state.json"]\nresume_args = ["--resume"]\n'
    )
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "compile", "run.toml"]
    assert subprocess.check_output(command, cwd=work, stderr=subprocess.DEVNULL) == described(20).compile(work)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"inject": ["kill:rank=5@step=1"]}, "0..0"),
        ({"inject": "kill:rank=5@step=1"}, "0..0"),
        ({"parameters": {"speed": "1"}}, "speed"),
        ({}, "evla.py"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(more: dict[str, Any], named: str, work: Path) -> None:
    judged = {"script": "evla.py", "metric": "m", "direction": "min"}
    run = described(3, **({} if more else {"evaluation": judged}))
    with pytest.raises(InputError, match=named):
        run.run(work, state_dir=work / ".argosy", **more)
    assert not list(work.glob(".argosy/runs/*"))


def test_what_is_wrong_is_named_as_it_is_written_here(work: Path) -> None:
    (work / "empty").mkdir()
    with pytest.raises(InputError, match=r"/TrainingRun\(gpt\): script = 'train.py': no such file"):
        described(3).compile(work / "empty")
    run: Any = described(3).run
    with pytest.raises(InputError, match=r"ranks = '2x1': .*; write ranks=\(2, 1\)"):
        run(work, ranks="2x1")


def on_gpus() -> argosy.TrainingRun:
    gang = {"resources": {"gpu": 8}}
    return argosy.TrainingRun(name="gpt", script="train.py", gang=gang)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: described(3).run(parameters={"speed": "1"}), r"^parameters\['speed'\]: the workflow has no such"),
        (lambda: described(3).run(parameters={"force": "x"}), r"^parameters\['force'\] = 'x': .* 'true' or 'false'$"),
        (lambda: described(3).run(parameters={"args": "x"}), r"example parameters={'args': '\[.*\]'}$"),
        (lambda: described(3).run(state_dir="/proc/none"), "^state_dir = /proc/none: .* your own with state_dir$"),
        (lambda: described(3).submit(kubeconfig="/none"), "^kubeconfig = '/none': .* or pass kubeconfig and context$"),
        (lambda: on_gpus().run(), r"Ways on: run\(ranks=\(2, 1\)\) .*, or submit\(\)$"),
        (lambda: argosy.find("file:///none"), "^name = 'file:///none': no place of a run"),
    ],
)
def test_no_error_speaks_of_options(call: Any, said: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They said --state-dir, -p and --kubeconfig."""
    monkeypatch.chdir(work)
    with pytest.raises(InputError, match=said):
        call()


def test_a_description_does_not_change_and_a_copy_is_checked() -> None:
    """A field that was set showed pydantic's own words; a copy took any name, and compiled it."""
    run: Any = described(3)
    with pytest.raises(InputError, match=r"^name = 'b': a description does not change; .*model_copy\(update="):
        run.name = "b"
    assert run.model_copy(update={"name": "b"}).name == "b"
    with pytest.raises(InputError, match=r"^name = 'Bad Name': must be a DNS label"):
        run.model_copy(update={"name": "Bad Name"})


BROKEN = """\
import os
os.makedirs("out", exist_ok=True)
print("a line before", flush=True)
def inner():
    raise KeyError("vocab")
try:
    inner()
except KeyError as error:
    raise ValueError("no such token") from error
"""


def test_a_failure_shows_the_whole_traceback_and_follow_every_line(work: Path) -> None:
    (work / "train.py").write_text(BROKEN)
    described_in = (
        'name = "gpt"\nscript = "train.py"\n[gang]\nlauncher = "plain"\n[checkpoint]\nmode = "opaque"\npath = "out"\n'
    )
    (work / "run.toml").write_text(described_in)
    quiet = starts.argosy(work, "run", "run.toml")
    assert quiet.returncode == 1
    told = quiet.stdout.partition("rank 0 wrote last:\n")[2]
    for line in ('raise KeyError("vocab")', "KeyError: 'vocab'", "direct cause", "ValueError: no such token"):
        assert line in told, quiet.stdout
    (page,) = (work / ".argosy/runs").glob("*/report.html")
    assert "ValueError: no such token" in page.read_text()
    assert "a line before" not in quiet.stdout
    assert '{"cause"' not in quiet.stdout + quiet.stderr
    live = starts.argosy(work, "run", "run.toml", "--follow", "--new")
    assert [line.endswith("a line before") for line in live.stdout.splitlines()].count(True) == 1


def test_help_shows_the_fields_as_they_are_written() -> None:
    shown = str(inspect.signature(argosy.TrainingRun))
    assert shown.startswith("(*, name, image='argosy/trainer:")
    assert "gang={}" in shown
    assert "Validator" not in shown
