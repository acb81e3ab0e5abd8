"""What the example of XGBoost comes to when nobody disturbs it, and without argosy."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/xgboost"


def boosted(folder: Path, rounds: int, *words: str) -> str:
    """Digest of the model that two processes make, in ``folder``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    meet = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, str(EXAMPLE / "train.py"), "--out", "boosted", *words]
    ranks = [subprocess.Popen(command, cwd=folder, env={**meet, "RANK": rank}) for rank in "01"]
    try:
        assert [each.wait(600) for each in ranks] == [0, 0]
    finally:
        for each in ranks:
            each.kill()
    return hashlib.sha256((folder / f"boosted/rounds-{rounds:05}.ubj").read_bytes()).hexdigest()
