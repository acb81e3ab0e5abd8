"""The DeepSpeed example without argosy: trained, started again with --resume, and the same losses."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "deepspeed-zero3"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None,
        reason="deepspeed is not installed here; `make prove SUITE=opaque-kills` runs this example with it",
    ),
]


def losses(folder: Path, *args: str) -> dict[int, str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run(
        [*command, str(EXAMPLE / "train.py"), "--config", str(EXAMPLE / "ds_config.json"), *args],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert "override: " in ran.stdout
    return {int(step): loss for step, loss in re.findall(r"(?m)^step (\d+) loss (\S+)", ran.stdout)}


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    straight = losses(tmp_path, "--steps", "6", "--save_every", "4", "--bf16")
    assert sorted(straight) == [1, 2, 3, 4, 5, 6]
    assert (tmp_path / "checkpoints" / "latest").read_text() == "global_step4"
    assert list((tmp_path / "model").iterdir())
    assert losses(tmp_path, "--steps", "6", "--save_every", "4", "--bf16", "--resume") == {
        5: straight[5],
        6: straight[6],
    }
