"""What ``make cluster`` builds with, without a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster.process import start_time
from tests.cluster.progress import wait_for

BUILD = """
import sys
from pathlib import Path
from tests.cluster.building import _compile
_compile(["sh", "-c", "echo $$ > pid; exec sleep 60"], Path(sys.argv[1]), "x")
"""


def test_a_killed_make_cluster_leaves_no_build_behind(tmp_path: Path) -> None:
    started = subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path)], cwd=Path(__file__).parents[2])
    written = tmp_path / "pid"
    wait_for("the build", lambda: written.exists() and bool(written.read_text().strip()), 30)
    assert start_time(int(written.read_text())) is not None
    started.kill()
    started.wait()
    wait_for("its end", lambda: start_time(int(written.read_text())) is None, 10)
