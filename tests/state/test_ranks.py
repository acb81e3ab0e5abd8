"""States of real ranks: every placement saved once and restored into any other, by Checkpointer and by torch DCP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parent / "ranks.py"


def test_every_placement_goes_into_every_other(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
    environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    logs = [tmp_path / f"rank-{rank}.log" for rank in range(4)]
    ranks = []
    for rank, log in enumerate(logs):
        command = [sys.executable, str(SCRIPT), str(rank), str(tmp_path)]
        with log.open("w") as output:
            ranks.append(subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.STDOUT))
    try:
        codes = [rank.wait(timeout=150) for rank in ranks]
    finally:
        for process in ranks:
            process.kill()
    written = "\n".join(f"---- rank {rank}\n{log.read_text()}" for rank, log in enumerate(logs))
    assert codes == [0, 0, 0, 0], written
    assert written.count("passed") == 46, written
