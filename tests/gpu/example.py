"""The example through ``argosy run``: trained on the GPU, killed, resumed, evaluated, gated, promoted.

Needs what scripts/gpu_wheels.py gathers. Its stand-in is ``make demo``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.gpu.case import Case, Part, Skipped

ROOT = Path(__file__).resolve().parents[2]


def run(case: Case) -> None:
    folder = case.folder / "stdlib-gpt"
    shutil.copytree(ROOT / "examples" / "stdlib-gpt", folder)
    cli = [sys.executable, "-m", "argosy.workflows.cli.main"]
    ready = subprocess.run([*cli, "compile", "run.toml", "-o", "w.yaml"], cwd=folder, capture_output=True, text=True)
    if "ModuleNotFoundError" in ready.stderr:
        raise Skipped(f"{ready.stderr.strip().splitlines()[-1]}: carry the wheels of scripts/gpu_wheels.py")
    subprocess.run([sys.executable, "prepare.py"], cwd=folder, check=True, timeout=120)
    command = [*cli, "run", "run.toml", "-j", "1x1", "--inject", "kill:rank=0@step=50", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=max(30.0, case.left))
    print(done.stderr[-3000:], done.stdout[-1500:], flush=True)
    case.figure("killed, resumed, evaluated, promoted", done.returncode, bar="exit code 0", held=done.returncode == 0)


PART = Part({"stdlib-gpt": run}, seconds=300, cpu=False)
