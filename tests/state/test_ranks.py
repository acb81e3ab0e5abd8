"""States of real ranks: every placement saved once and restored into any other, by Checkpointer and by torch DCP."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parent / "ranks.py"


def test_every_placement_goes_into_every_other(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
    environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    ranks = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        code = ranks.wait(timeout=150)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ranks.pid, signal.SIGKILL)
        ranks.wait()
    written = "\n".join(f"---- {log.stem}\n{log.read_text()}" for log in sorted(tmp_path.glob("rank-*.log")))
    assert code == 0, written
    assert len(re.findall(r"(?m)^rank \d passed \d", written)) == 43, written
