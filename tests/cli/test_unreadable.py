"""What an ordinary user may not read or write: named in a line, and never passed over without a word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root reads everything")
# Root without its capabilities obeys permissions, and unlike another user it can read this interpreter.
OBEYING = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
DENIED = "Permission denied; "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text('name = "r"\nscript = "train.py"\n')
    (tmp_path / "a.log").write_text("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    for name in ("secret.log", "secret.toml", "secret.py", "secret.yaml"):
        (tmp_path / name).touch(0o000)
    (tmp_path / "locked").mkdir(0o000)
    return tmp_path


def argosy(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [*OBEYING, sys.executable, "-m", "argosy.workflows.cli.main", *argv]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("diagnose secret.log", "secret.log: cannot be read: Permission denied"),
        ("diagnose locked", "locked: holds no log to read"),
        ("diagnose locked/a.log", f"locked/a.log: {DENIED}"),
        ("lint secret.toml", f"secret.toml: {DENIED}"),
        ("lint secret.yaml", f"secret.yaml: {DENIED}"),
        ("lint locked", f"locked: {DENIED}"),
        ("lint .", f"locked: {DENIED}"),
        ("import .", f"locked: {DENIED}"),
        ("init secret.py", "secret.py"),
        ("init locked/train.py", f"locked/train.py: {DENIED}"),
        ("init train.py -o locked/run.toml --opaque out --include *.pt", f"locked/run.toml: {DENIED}"),
        ("compile run.toml -o locked/w.yaml", f"locked/w.yaml: {DENIED}"),
        ("run locked/run.toml", "locked/run.toml: cannot be read"),
        ("stage file:///etc locked/data", "locked/data"),
    ],
)
def test_it_is_named_in_a_line(argv: str, said: str, folder: Path) -> None:
    ended = argosy(folder, *argv.split())
    assert "mistake of ours" not in ended.stderr
    assert said in ended.stderr, ended.stderr
    assert ended.returncode in (2, 78), ended.stderr


def test_of_a_folder_of_logs_the_readable_ones_are_judged_and_the_others_named(folder: Path) -> None:
    ended = argosy(folder, "diagnose", ".")
    assert ended.returncode == 0
    assert ended.stdout.startswith("cuda_illegal_access")
    assert sorted(ended.stderr.splitlines()) == [
        "not read: ./locked: Permission denied",
        "not read: secret.log: Permission denied",
        "not read: secret.yaml: Permission denied",
    ]


def test_a_run_toml_that_cannot_be_read_is_not_taken_for_none(folder: Path) -> None:
    (folder / "locked").chmod(0o755)
    assert f"secret.toml: {DENIED}" in argosy(folder, "lint", ".").stderr


def test_of_the_code_it_is_named_and_may_be_ignored_as_the_error_says(folder: Path) -> None:
    (folder / ".argosyignore").write_text("secret.*\n")
    assert (
        argosy(folder, "compile", "run.toml").stderr
        == f"argosy: code: {folder}/locked: {DENIED}make it readable or ignore it\n"
    )
    (folder / ".argosyignore").write_text("secret.*\nlocked/\n")
    assert argosy(folder, "compile", "run.toml").returncode == 0


@pytest.mark.parametrize("locked", ["gpt-2", "gpt-2/state.json"])
def test_another_users_run_is_named_and_hides_no_other(folder: Path, locked: str) -> None:
    """Its state was said to be none and the folder to be removed; ls and top said nothing but that."""
    for name in ("gpt-1", "gpt-2"):
        (folder / ".argosy/runs" / name).mkdir(parents=True)
        (folder / ".argosy/runs" / name / "state.json").write_text(f'{{"phase": "Succeeded", "name": "{name}"}}')
    (folder / ".argosy/runs" / locked).chmod(0)
    (folder / ".argosy/runs/.DS_Store").write_text("of a file manager, and no run")
    said = f"gpt-2/state.json: {DENIED}give yourself the right to it"
    for verb in ("status", "explain", "report"):
        ended = argosy(folder, verb, "gpt-2")
        assert (ended.returncode, said in ended.stderr, "remove" in ended.stderr) == (2, True, False), ended.stderr
    listed = argosy(folder, "ls")
    assert f"warning: {folder}/.argosy/runs/{said}" in listed.stderr
    assert ("gpt-1  Succeeded" in listed.stdout, "DS_Store" in listed.stdout + listed.stderr) == (True, False)
