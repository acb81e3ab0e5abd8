"""Tests for which `make test` has no time: further ways to what it shows once. One line is one test."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any

from tests.cluster.cluster import Cluster
from tests.prove.record import ROOT, Record

COUNT = 200
COLUMNS = ["test", "seconds", "held", "error"]
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next tests marked ``variant`` that are not recorded yet; 0 when all that were run passed."""
    record, names = Record("variants", seed), _variants()
    todo = [names[number] for number in record.left(min(count, len(names)))]
    with Cluster().lent() if any("tests/cluster/" in name for name in todo) else nullcontext():
        record.go_on(todo, _case, minutes)
    return record.told("Further ways to what the tests show once", COLUMNS)


def _variants() -> list[str]:
    """Those on this machine first."""
    command = [*_PYTEST, "--collect-only", "-m", "variant", "tests"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted((line for line in listed.splitlines() if "::" in line), key=lambda name: "tests/cluster/" in name)


def _case(name: str) -> dict[str, Any]:
    began = time.monotonic()
    done = subprocess.run([*_PYTEST, name], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E  ")]
    held = done.returncode == 0 and " passed" in done.stdout
    if not held:
        print(done.stdout, flush=True)
    short = name.removeprefix("tests/").replace("|", "/")
    return {"test": short, "seconds": round(time.monotonic() - began), "held": held, "error": "".join(errors[:1])[:200]}
