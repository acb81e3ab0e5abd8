"""What Argo shows of a step that ended badly: its termination message, whatever the ending."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.contract import env

GATE = [
    "--metric=loss", f"--checkpoint-digest={'a' * 64}", "--direction=min", "--name=r", "--workflow=w",
    "--workflow-uid=u", "--pointer=p",
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--no-such-flag=1"], 2, "unrecognized arguments: --no-such-flag=1; the run was compiled by another version"),
        (GATE, 2, "--store-uri, --value"),
        ([*GATE, "--value=1", "--store-uri=nowhere:/{{x}}$(y)"], 2, "nowhere:/((x))(y)"),
        ([*GATE, "--store-uri=file:///store", "--value=many"], 2, "many"),
    ],
)
def test_bad_input_is_shown(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    environ = {**os.environ, env.POD_ROOT: str(tmp_path)}
    command = [sys.executable, "-m", "argosy.steps.gate", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    line = (tmp_path / "dev/termination-log").read_text()
    record = json.loads(line)
    assert record["exit_code"] == code
    assert words in record["message"]
    assert len(line) <= 1024
    assert not set(line) & set("$\\`'"), line
    assert "{{" not in line


def test_a_mistake_of_ours_is_shown_and_keeps_its_traceback(tmp_path: Path) -> None:
    program = (
        "from argosy.steps.contract.arguments import GateArgs\n"
        "from argosy.steps.outputs import step_main\n"
        "def body(args): raise KeyError('lost {{it}}')\n"
        "step_main(GateArgs, body)"
    )
    environ = {**os.environ, env.POD_ROOT: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, *GATE, "--store-uri=s", "--value=1"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    line = json.loads((tmp_path / "dev/termination-log").read_text())
    assert line == {"exit_code": 1, "message": "KeyError: lost ((it))"}
