"""Tests for which `make test` has no time, most on a cluster: further ways to what it shows once. One line is one."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from tests.cluster.cluster import Cluster
from tests.prove.record import ROOT, Record

COUNT = 100
COLUMNS = ["test", "seconds", "held", "error"]
_PLACES = ("tests/cluster", "tests/supervisor/test_ray.py")
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next tests marked ``variant`` that are not recorded yet; 0 when all that were run passed."""
    record, names = Record("cluster-variants", seed), _variants()
    with Cluster().lent():
        record.go_on([names[number] for number in record.left(min(count, len(names)))], _case, minutes)
    return record.told("Further ways to what the tests show once", COLUMNS)


def _variants() -> list[str]:
    command = [*_PYTEST, "--collect-only", "-m", "variant", *_PLACES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "::" in line]


def _case(name: str) -> dict[str, Any]:
    began = time.monotonic()
    done = subprocess.run([*_PYTEST, name], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E  ")]
    held = done.returncode == 0 and " passed" in done.stdout
    if not held:
        print(done.stdout, flush=True)
    short = name.removeprefix("tests/cluster/").replace("|", "/")
    return {"test": short, "seconds": round(time.monotonic() - began), "held": held, "error": "".join(errors[:1])[:200]}
