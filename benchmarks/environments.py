"""The peer's own environment, made once in the user's cache and never in the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.paired import BenchError

METAFLOW = "metaflow==2.19.39"


def metaflow_python() -> Path:
    """The interpreter of a venv with Metaflow, of the same Python as ours.

    Raises:
        BenchError: it cannot be installed (no network and no cache).
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    venv = base / "argosy" / f"bench-{METAFLOW.replace('==', '-')}-py{sys.version_info.major}.{sys.version_info.minor}"
    python = venv / "bin" / "python"
    done = venv / ".installed"  # written last: its existence means that the installation completed
    if not done.exists():
        shutil.rmtree(venv, ignore_errors=True)
        for command in _commands(venv, python):
            print(f"  {' '.join(command[-3:])}", file=sys.stderr, flush=True)
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise BenchError(f"cannot install {METAFLOW}: {made.stderr.strip()[-500:]}")
        done.touch()
    return python


def _commands(venv: Path, python: Path) -> list[list[str]]:
    uv = shutil.which("uv")
    if uv is not None:
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(venv)],
            [uv, "pip", "install", "--quiet", "--python", str(python), METAFLOW],
        ]
    return [[sys.executable, "-m", "venv", str(venv)], [str(python), "-m", "pip", "install", "--quiet", METAFLOW]]
