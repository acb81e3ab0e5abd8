"""The example through the command line: trained on the GPU, killed, resumed, evaluated, gated, promoted; its gang's
preflight and its collectives over NCCL.

Needs what scripts/gpu_wheels.py gathers. Its stand-in is ``make demo``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.gpu.case import Case, Part, Skipped
from tests.prove.unaware import account

ROOT = Path(__file__).resolve().parents[2]


CLI = (sys.executable, *account.CLI)


def made(case: Case) -> Path:
    """A copy of the example.

    Raises:
        Skipped: a package is missing.
    """
    folder = case.folder / "stdlib-gpt"
    shutil.copytree(ROOT / "examples" / "stdlib-gpt", folder)
    ready = subprocess.run([*CLI, "compile", "run.toml", "-o", "w.yaml"], cwd=folder, capture_output=True, text=True)
    if "ModuleNotFoundError" in ready.stderr:
        raise Skipped(f"{ready.stderr.strip().splitlines()[-1]}: carry the wheels of scripts/gpu_wheels.py")
    return folder


def called(case: Case, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*CLI, *words], cwd=folder, capture_output=True, text=True, timeout=max(30.0, case.left))
    print(done.stderr[-3000:], done.stdout[-1500:], flush=True)
    return done


def run(case: Case) -> None:
    folder = made(case)
    config = folder / "run.toml"
    config.write_text(config.read_text().replace("[gang]\n", '[gang]\npreflight = "enforce"\n'))
    subprocess.run([sys.executable, "prepare.py"], cwd=folder, check=True, timeout=120)
    done = called(case, folder, "run", "run.toml", "-j", "1x1", "--inject", "kill:rank=0@step=50", "--json")
    case.figure("killed, resumed, evaluated, promoted", done.returncode, bar="exit code 0", held=done.returncode == 0)
    said = next((line for line in done.stderr.splitlines() if "preflight" in line), "nothing")
    case.figure("preflight", said, bar="speaks", held=said != "nothing")


def bench_comm(case: Case) -> None:
    done = called(case, made(case), "bench-comm", "run.toml", "-j", "1x1", "--seconds", "8", "--json")
    case.figure("bench-comm of one rank", done.returncode, bar="exit code 0", held=done.returncode == 0)
    case.figure("measured over", "NCCL" if "NCCL" in done.stderr + done.stdout else "?", bar="NCCL")


CASES = {"stdlib-gpt": run, "bench-comm": bench_comm}
PART = Part(CASES, seconds=300, cpu=False, beside=frozenset(CASES))
