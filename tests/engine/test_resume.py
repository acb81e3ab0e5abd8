# ruff: noqa: E501  (YAML reads better in one line)
"""The engine is killed, interrupted and started again: nothing is left, nothing finished is done twice."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError
from argosy.steps.pods.processes import carrying, start_time
from argosy.workflows.engine.api import RunOptions, latest_unfinished, run
from argosy.workflows.engine.state import write_file

TEMPLATES = """
- name: main
  steps:
  - - {name: a, template: count, arguments: {parameters: [{name: file, value: a}, {name: seconds, value: "0"}]}}
  - - {name: b, template: count, arguments: {parameters: [{name: file, value: b}, {name: seconds, value: "SECONDS"}]}}
  - - {name: c, template: count, arguments: {parameters: [{name: file, value: c}, {name: seconds, value: "0"}]}}
- name: count
  inputs: {parameters: [{name: file}, {name: seconds}]}
  retryStrategy: {limit: 0}
  container:
    image: i
    command: [sh, -c, "echo x >> /data/{{inputs.parameters.file}}; sleep {{inputs.parameters.seconds}} & wait"]
    volumeMounts: [{name: data, mountPath: /data}]
"""
SPEC = "entrypoint: main\npodSpecPatch: '{terminationGracePeriodSeconds: 2}'\nvolumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
DRIVER = """
import sys
from pathlib import Path
from argosy.workflows.engine.api import RunOptions, run
state = run(Path(sys.argv[1]).read_bytes(), RunOptions(state_dir=Path(sys.argv[2]), workflow_name="wf"))
print(state.phase, state.interrupted)
"""


@pytest.fixture
def file(tmp_path: Path, make_workflow: Callable[..., bytes]) -> Path:
    path = tmp_path / "workflow.yaml"
    path.write_bytes(make_workflow(TEMPLATES.replace("SECONDS", "1.5"), SPEC))
    return path


def begin(file: Path, state_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(file), str(state_dir)], stdout=subprocess.PIPE, text=True
    )


def wait_for(state_dir: Path, name: str, phase: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = json.loads((state_dir / "runs/wf/state.json").read_text())
        except OSError:
            state = {"nodes": []}
        found = [node for node in state["nodes"] if node["name"] == name and node["phase"] == phase]
        if found and found[0]["type"] == "Pod":
            return dict(state)
        time.sleep(0.01)
    raise AssertionError(f"{name} never was {phase}")


def gone(uid: str) -> bool:
    deadline = time.monotonic() + 10
    while carrying(env.POD_TOKEN, uid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_killed_and_run_again(file: Path, tmp_path: Path) -> None:
    state_dir, data = tmp_path / "state", tmp_path / "state/volumes/data"
    engine = begin(file, state_dir)
    state = wait_for(state_dir, "wf[1].b(0)", "Running")
    engine.kill()
    engine.communicate()
    assert gone(state["uid"])
    unfinished = latest_unfinished(state_dir, state["yaml_sha256"], {})
    assert unfinished is not None
    assert unfinished.name == "wf"
    again = run(file.read_bytes(), RunOptions(state_dir=state_dir, workflow_name="wf"))
    assert (again.phase, again.uid) == ("Succeeded", state["uid"])
    assert [node.name for node in again.nodes.values() if "b(" in node.name] == ["wf[1].b(0)"]
    assert (data / "a").read_text() == "x\n"
    assert len((data / "b").read_text().split()) in (1, 2)
    assert (data / "c").read_text() == "x\n"
    assert not carrying(env.POD_TOKEN, state["uid"])
    assert latest_unfinished(state_dir, state["yaml_sha256"], {}) is None


@contextmanager
def still_leaving(state_dir: Path) -> Iterator[None]:
    """A first process of b's pod that has written its ending and is not gone yet."""
    record = max((state_dir / "runs/wf/nodes").rglob("process.json"), key=lambda path: path.stat().st_mtime_ns)
    with subprocess.Popen(["sleep", "60"]) as process:
        known = json.loads(record.read_text()) | {"pid": process.pid, "start_time": start_time(process.pid)}
        record.write_text(json.dumps(known))
        try:
            yield
        finally:
            process.kill()


def test_a_success_that_no_engine_noted_is_not_done_again(file: Path, tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    engine = begin(file, state_dir)
    wait_for(state_dir, "wf[1].b(0)", "Running")
    os.kill(engine.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 20
    while len(list((state_dir / "runs/wf/nodes").rglob("ending.json"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    engine.kill()
    engine.communicate()
    with still_leaving(state_dir):
        again = run(file.read_bytes(), RunOptions(state_dir=state_dir, workflow_name="wf"))
    assert again.phase == "Succeeded"
    assert [(state_dir / "volumes/data" / name).read_text() for name in "abc"] == ["x\n"] * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_and_run_again(file: Path, tmp_path: Path, number: signal.Signals) -> None:
    state_dir = tmp_path / "state"
    engine = begin(file, state_dir)
    state = wait_for(state_dir, "wf[1].b(0)", "Running")
    engine.send_signal(number)
    output, _ = engine.communicate(timeout=20)
    assert output.split() == ["Running", number.name]
    assert not carrying(env.POD_TOKEN, state["uid"])
    saved = json.loads((state_dir / "runs/wf/state.json").read_text())
    assert saved["interrupted"] == number.name
    again = run(file.read_bytes(), RunOptions(state_dir=state_dir, workflow_name="wf"))
    assert (again.phase, again.interrupted, again.message) == ("Succeeded", "", "")
    assert (state_dir / "volumes/data/a").read_text() == "x\n"


def test_two_engines_never_run_one_workflow(file: Path, tmp_path: Path) -> None:
    engine = begin(file, tmp_path / "state")
    wait_for(tmp_path / "state", "wf[1].b(0)", "Running")
    with pytest.raises(InputError, match="another engine runs it now"):
        run(file.read_bytes(), RunOptions(state_dir=tmp_path / "state", workflow_name="wf"))
    assert engine.communicate(timeout=20)[0].split() == ["Succeeded"]


def test_a_finished_name_is_not_run_again(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    text = make_workflow("- name: main\n  container: {image: i, command: ['true']}\n")
    options = RunOptions(state_dir=tmp_path)
    assert run(text, options).phase == "Succeeded"
    with pytest.raises(InputError, match="has run and ended Succeeded"):
        run(text, options)


def test_an_unfinished_run_of_another_yaml_is_not_touched(file: Path, tmp_path: Path) -> None:
    engine = begin(file, tmp_path / "state")
    wait_for(tmp_path / "state", "wf[1].b(0)", "Running")
    engine.kill()
    engine.communicate()
    other = file.read_bytes() + b"# another\n"
    with pytest.raises(InputError, match="another YAML or other parameters"):
        run(other, RunOptions(state_dir=tmp_path / "state", workflow_name="wf"))


def test_a_pod_that_dies_with_its_first_process_is_deleted(file: Path, tmp_path: Path) -> None:
    engine = begin(file, tmp_path / "state")
    wait_for(tmp_path / "state", "wf[1].b(0)", "Running")
    folder = next((tmp_path / "state/runs/wf/nodes/node-0/pods").glob("*count*"), None)
    pods = {path.parent for path in (tmp_path / "state/runs/wf/nodes").rglob("process.json")}
    assert folder is not None
    running = [path for path in pods if not (path / "ending.json").exists()]
    assert len(running) == 1
    os.kill(json.loads((running[0] / "process.json").read_text())["pid"], signal.SIGKILL)
    assert engine.communicate(timeout=20)[0].split() == ["Failed"]
    saved = json.loads((tmp_path / "state/runs/wf/state.json").read_text())
    node = next(node for node in saved["nodes"] if node["name"] == "wf[1].b(0)")
    assert (node["phase"], node["message"], node["exitCode"]) == ("Error", "pod deleted", None)


def test_a_state_that_cannot_be_written_names_its_file_and_leaves_the_old_one(tmp_path: Path) -> None:
    """On a full disk the last word was "a file or the standard output", and a half of one stayed there."""
    path = tmp_path / "state.json"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        with pytest.raises(OSError, match=re.escape(str(path))):
            write_file(path, b"0" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]
    assert path.read_text() == "old"
