"""A script that saves ten times a second loses few steps: no save of it ever rests for long."""

from __future__ import annotations

import re
from pathlib import Path

from tests.starts import argosy

SCRIPT = """
import json, time
from pathlib import Path
out = Path("out"); out.mkdir(exist_ok=True)
saved = out / "state.json"
step = json.loads(saved.read_text())["step"] if saved.exists() else 0
while step < 70:
    time.sleep(0.1)
    step += 1
    part = saved.with_suffix(".part")
    part.write_text(json.dumps({"step": step}))
    part.replace(saved)
    print(f"step {step} loss {1 / step:.3f}", flush=True)
"""
RUN = """
name = "often"
script = "train.py"
[gang]
nnodes = 1
launcher = "plain"
[checkpoint]
mode = "opaque"
path = "out"
include = ["state.json"]
[retry]
backoff_seconds = 0.1
"""


def test_killed_it_goes_on_from_near_its_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.toml").write_text(RUN)
    done = argosy(tmp_path, "run", "run.toml", "--inject", "kill:rank=0@step=60")
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"attempt 2: from step (\d+) ", done.stdout + done.stderr)
    assert told is not None, done.stdout + done.stderr
    # None of sixty used to be committed. A busy machine may miss some of them.
    assert int(told[1]) >= 30, done.stdout + done.stderr
