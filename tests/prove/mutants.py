"""Every guard taken away, one at a time: the tests named with it must fail.

A copy of the tree is edited, never the tree. That each guard's text is there is held by ``tests/house/test_guards.py``.
``--count`` and ``--seed`` say nothing here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.models.guards import GUARDS, Guard
from tests.prove.record import ROOT, Record

COLUMNS = ["package", "seconds", "held"]
LIMIT_SECONDS = 120.0
"""A test that does not end any more has failed too."""


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Go through the guards that are not recorded yet, until ``minutes`` are over; 0 when all so far held."""
    record = Record("mutants", seed)
    done = {case["guard"] for case in record.cases()}
    with tempfile.TemporaryDirectory(prefix="argosy-mutants-") as work:
        tree = copied(Path(work))
        sound: set[str] = set()
        todo = [guard for guard in GUARDS if guard.what not in done]
        record.go_on(todo, lambda guard: removed(tree, guard, sound), minutes)
    return record.told("Every guard removed, one at a time", COLUMNS, count=0, by=["package"])


def copied(work: Path) -> Path:
    """A copy of what the tests need."""
    tree = work / "tree"
    tree.mkdir()
    for name in ("argosy", "steps", "workflows", "tests", "examples"):
        shutil.copytree(
            ROOT / name, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".argosy")
        )
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def absent(guard: Guard, root: Path = ROOT) -> str:
    """Why the edit cannot be made; "" if it can."""
    found = (root / guard.file).read_text().count(guard.old)
    return "" if found == 1 else f"{guard.file} holds its text {found} times"


def removed(tree: Path, guard: Guard, sound: set[str]) -> dict[str, object]:
    """One row. The tests must pass on the untouched tree, or their failure would say nothing."""
    began = time.monotonic()
    wrong, failed = absent(guard, tree), ""
    if not wrong and guard.tests not in sound and tested(tree, guard.tests):
        wrong = "the tests fail without the edit"
    if not wrong:
        sound.add(guard.tests)
        whole = (tree / guard.file).read_text()
        (tree / guard.file).write_text(whole.replace(guard.old, guard.new))
        failed = tested(tree, guard.tests)
        (tree / guard.file).write_text(whole)
    return {
        "guard": guard.what,
        "file": guard.file,
        "package": str(Path(guard.file).parent),
        "tests that failed": wrong or failed or "NONE",
        "seconds": round(time.monotonic() - began, 1),
        "held": bool(failed) and not wrong,
    }


def tested(tree: Path, tests: str) -> str:
    """The first test that fails, or what else went wrong; "" when all pass."""
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *shlex.split(tests)]
    with subprocess.Popen(
        command, cwd=tree, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as pytest:  # fmt: skip
        try:
            text, _ = pytest.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(pytest.pid, signal.SIGKILL)
            return f"no end within {LIMIT_SECONDS:.0f} s"
    if pytest.returncode == 0:
        return ""
    if pytest.returncode < 0:  # a guard of memory that is shared or mapped
        return f"pytest itself ended by signal {-pytest.returncode}"
    if pytest.returncode != 1:
        raise SystemExit(f"pytest ended with {pytest.returncode}:\n{text[-5000:]}")
    lines = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" - ")[0].removeprefix("FAILED ") if lines else "pytest failed"
