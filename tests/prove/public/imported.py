"""``argosy import`` of one of the jobs, and what has to be written besides what it knows."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.prove.public.data import packages
from tests.prove.public.sources import Job

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]


def imported(job: Job, folder: Path, place: str) -> dict[str, Any]:
    """The run: its code, manifest and data are fetched into ``folder``, which its pods have as ``place``."""
    job.fetch(folder, place)
    job.data(folder)
    entry = "script" if job.script.endswith(".py") else "module"
    argosy(folder, "import", "job.yaml", f"--{entry}", job.script, "-o", "run.toml")
    run = tomllib.loads((folder / "run.toml").read_text())
    assert run["gang"]["runtime"] == job.kind.lower()
    run.pop("working_dir", None)
    run |= {entry: job.script, "code": ".", "args": [each.format(folder=place) for each in job.args]}
    words = {"folder": place, "packages": packages(job.packages or job.kind), "path": _path()}
    theirs = {name: text.format_map(words) for name, text in job.env}
    run["env"] = run.get("env", {}) | {"PYTHONPATH": words["packages"]} | theirs
    run["checkpoint"] = {"mode": "opaque", "path": job.checkpoint[0], "include": [*job.checkpoint[1:]]}
    if job.resume:
        run["checkpoint"]["resume_args"] = [*job.resume]
    gang = run["gang"] | dict(job.gang)
    run["gang"] = {name: value for name, value in gang.items() if value is not None}
    return run


def argosy(folder: Path, *words: str) -> str:
    """What a verb prints, which must succeed."""
    done = subprocess.run([*ARGOSY, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:] + done.stdout[-600:]
    return done.stdout


def _path() -> str:
    """A run's PATH is that of argosy's steps too."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"
