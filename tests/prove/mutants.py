"""Every guard taken away, one at a time: the tests named with it must fail.

A copy of the tree is edited, never the tree. That each guard's text is there is held by ``tests/house/test_guards.py``.
``--count`` and ``--seed`` say nothing here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import boto3  # noqa: F401  (imported before the fork: see run_here)
import hypothesis.stateful  # noqa: F401
import moto.server  # noqa: F401
import obstore.store  # noqa: F401
import pytest
import torch  # noqa: F401

from tests.models.guards import GUARDS, Guard
from tests.prove.record import ROOT, Record

COLUMNS = ["guard", "file", "tests that failed", "seconds", "held"]
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
    return record.told("Every guard removed, one at a time", COLUMNS, count=0)


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
        "tests that failed": wrong or failed or "NONE",
        "seconds": round(time.monotonic() - began, 1),
        "held": bool(failed) and not wrong,
    }


def tested(tree: Path, tests: str) -> str:
    """The first test that fails, or what else went wrong; "" when all pass."""
    output = tree.parent / "output"
    child = os.fork()
    if child == 0:
        code = 98
        try:
            code = run_here(tree, tests, output)
        finally:
            # Nothing of the parent's may be unwound here: its copy of the tree would go.
            traceback.print_exc()
            os._exit(code)
    code = waited(child)
    text = output.read_text()
    if code == 0:
        return ""
    if code is None:
        return f"no end within {LIMIT_SECONDS:.0f} s"
    if code != 1:
        raise SystemExit(f"pytest ended with {code}:\n{text[-5000:]}")
    lines = [line for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" - ")[0].removeprefix("FAILED ") if lines else "pytest failed"


def run_here(tree: Path, tests: str, output: Path) -> int:
    """pytest in this process, which was forked when everything but the code under test had been imported."""
    with output.open("wb", buffering=0) as target:
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
    for name in [name for name in sys.modules if name.split(".")[0] in ("argosy", "tests")]:
        del sys.modules[name]
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)  # for the processes that tests start
    sys.dont_write_bytecode = True
    try:
        code = pytest.main(
            [
                "-x",
                "-q",
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
                "-p",
                "no:cacheprovider",
                "--no-header",
                *shlex.split(tests),
            ]
        )
        where = Path(sys.modules["argosy"].__path__[0])
        return int(code) if tree in where.parents else 99
    finally:
        sys.stdout.flush()


def waited(child: int) -> int | None:
    """Its exit code; None when it was killed for taking too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
