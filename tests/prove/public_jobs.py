"""Jobs that others published, imported and run on this machine: a rank is killed on the way.

``ARGOSY_PUBLIC`` is a folder for clones of their repositories, each as OWNER+NAME (one that is missing is fetched at
its commit; nothing of theirs is kept here), and ``ARGOSY_PUBLIC_PACKAGES`` one with what their images have, below the
kind's name: PyTorchJob: torchvision; XGBoostJob: xgboost 1.7 with scikit-learn, pandas, oss2; TFJob: tensorflow-cpu
with tf_keras, tensorflow-datasets, importlib_resources, tensorboard; LightGBM (an XGBoostJob's too): ``bin/lightgbm``,
its command of version 4.1. Which jobs, and what is changed in each: public/sources.py. ``ARGOSY_PROVE_STYLE`` is one of
the kinds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import tomlkit

from tests.prove.public.data import PACKAGES
from tests.prove.public.imported import argosy, imported
from tests.prove.public.sources import JOBS, Job
from tests.prove.record import STYLE, Record

COLUMNS = ["kind", "source", "licence", "changed", "attempts", "ended by", "resumed from step",
           "its script then said", "trained to step", "committed by", "its end holds", "held", "error"]  # fmt: skip
NOTE = """\
On one machine, by `argosy run`; their images cannot be pulled there. Each kind has one that went on from its own
checkpoint; the first XGBoostJob's and the first TFJob's scripts read none, and began again.

The XGBoostJob's tracker numbers the ranks itself, and rank 0 saves: whichever node that is, its files are the end
([several nodes](opaque-folders.md#several-nodes)). Before, the first node's were, and two of three such runs failed. On
CPUs the MPIJob's script does not average its ranks' gradients; they meet when they are judged, each epoch. A step that
was resumed from is a commit's number where the script names none (RayJob). LightGBM counts from 1 again after a
restart: what it went on from stands in the name of the file that it was given, and its last tree's number in the end.
The last TFJob's callback removes its backup when training has ended; what its end holds is the model that it saves
then."""
COUNT = len(JOBS)
NEEDS = ("ARGOSY_PUBLIC", PACKAGES)


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The jobs that are not recorded yet; 0 when all that were done held."""
    style = os.environ.get(STYLE, "")
    jobs = [job for job in JOBS if style in ("", job.kind)]
    record = Record("public-jobs", seed, style=style)
    record.go_on([jobs[number] for number in record.left(min(count, len(jobs)))], _case, minutes)
    return record.told("Published jobs, imported, killed and gone on", COLUMNS, count=0, note=NOTE)


def _case(job: Job) -> dict[str, Any]:
    folder = Record("public-jobs", 0).folder / "public-jobs" / job.kind
    shutil.rmtree(folder, ignore_errors=True)
    told = {"kind": job.kind, "source": job.place, "licence": job.licence, "changed": job.told}
    try:
        return {**told, **_run(job, folder)}
    except (AssertionError, KeyError, OSError, subprocess.CalledProcessError) as error:
        return {**told, "held": False, "error": " ".join(repr(error).split())[-300:]}


def _run(job: Job, folder: Path) -> dict[str, Any]:
    run = imported(job, folder, str(folder))
    (folder / "run.toml").write_text(tomlkit.dumps(run))
    argosy(folder, "run", "run.toml", *job.options, "--inject", job.kill)
    status = json.loads(argosy(folder, "status", "--json"))
    attempts = status["attempts"]
    first, last = attempts[0], attempts[-1]
    assert (status["phase"], len(attempts)) == ("Succeeded", 2), status
    assert int(last["restored_step"]) > 0 or not job.says, attempts
    logs = argosy(folder, "logs")
    said = re.search(job.says, logs)
    assert said, f"nobody said {job.says}"
    return {
        "attempts": len(attempts),
        "ended by": f"{job.kill.partition(':')[0]} of rank {first['rank']} on {first['node']}",
        "resumed from step": last["restored_step"] if job.says else "none: its script reads no checkpoint",
        "its script then said": said[said.lastindex or 0],
        "trained to step": status["last_step"],
        "committed by": _committer(logs),
        "its end holds": _end(job, folder, status["run_id"]) if job.end[0] else "",
        "held": True,
    }


def _end(job: Job, folder: Path, run: str) -> str:
    """The file that the last commit must hold, and what was looked for in it."""
    name, text = job.end
    argosy(folder, "checkpoint", "get", run, "end")
    found = re.search(text, (folder / "end" / name).read_text(errors="replace"))
    assert found, f"{name} has no {text}"
    return f"{name} {found[found.lastindex or 0]}".strip()


def _committer(logs: str) -> str:
    """The pod whose files are the end."""
    told = re.findall(r"^(\S+) +\| argosy: checkpoint of step \d+ committed", logs, re.MULTILINE)
    return told[-1].partition("-a1-")[2] if told else ""
