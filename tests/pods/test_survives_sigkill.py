"""A process of a pod that SIGKILL does not end: the pod's ending is told all the same."""

from __future__ import annotations

import os
import sys
import time
import uuid
from pathlib import Path

import pytest

from argosy.steps.pods import processes
from argosy.steps.pods.pod import Pod, PodSpec, start
from tests.held import MAY_BE_TRACED, held_at_its_end

LEAVES_ONE = f"""
{MAY_BE_TRACED}
import os, sys, time
if sys.argv[1] == "child" and os.fork():
    while not os.path.exists("held"):
        time.sleep(0.01)
    sys.exit(3)
with open("pid.new", "w") as told:
    told.write(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)
"""


def started(folder: Path, who: str) -> tuple[Pod, int]:
    spec = PodSpec(
        name="pod",
        command=(sys.executable, "-c", LEAVES_ONE, who),
        env={"PATH": os.environ["PATH"]},
        root=folder / "root",
        token=f"test-{uuid.uuid4().hex}",
        log=folder / "log",
        folder=folder,
        workdir=str(folder / "root"),
    )
    pod, told = start(spec), folder / "root" / "pid"
    while not told.exists():
        time.sleep(0.01)
    return pod, int(told.read_text())


def test_a_pod_whose_child_survives_ends_as_its_main_process_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, pid = started(tmp_path, "child")
    monkeypatch.setattr(processes, "GONE_SECONDS", 0.5)
    with held_at_its_end(pid):
        (tmp_path / "root" / "held").touch()
        while (ending := pod.poll()) is None:
            time.sleep(0.05)
        assert (ending.exit_code, ending.lost) == (3, False)
        assert f"argosy: processes [{pid}] survive SIGKILL" in (tmp_path / "log").read_text()
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_pod_that_is_killed_and_survives_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pod, pid = started(tmp_path, "main")
    monkeypatch.setattr(processes, "GONE_SECONDS", 0.5)
    with held_at_its_end(pid):
        ending = pod.kill()
        assert ending.lost
        assert f"processes [{pid}] survive SIGKILL" in capfd.readouterr().err
