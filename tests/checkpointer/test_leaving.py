"""The end of a rank whose last act was a collective; with a thread of gloo that still waits for the GIL then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SCRIPT = """
import os, sys, time
import torch, torch.distributed as dist
from argosy.steps.checkpointer import Checkpointer

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
sys.setswitchinterval(60)  # who waits for the GIL gets it when it is given away, not before
tensor = torch.ones(2)
alone = sys.getrefcount(tensor)
for _ in range(100_000):
    dist.all_reduce(tensor)
    if sys.getrefcount(tensor) > alone:
        break  # gloo's thread holds it still
    tensor = torch.ones(2)
else:
    os._exit(3)

class Late:
    # Gives the GIL away when the interpreter is past the point at which threads may have it.
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

late = Late()
"""


def test_a_collective_just_before_the_end_aborts_no_rank(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(tmp_path / "rendezvous")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
