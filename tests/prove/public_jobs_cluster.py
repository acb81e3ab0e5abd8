"""Jobs that others published, imported and run in the pods of their own operator: a rank is killed on the way.

As public_jobs.py, on the cluster of one machine, whose containers see ``/usr``: ``ARGOSY_PUBLIC_PACKAGES`` lies below.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import tomlkit

from argosy.steps.cluster.containers import main_container
from tests.cluster import images, runtimes
from tests.cluster.cluster import Cluster
from tests.cluster.progress import ClusterError
from tests.cluster.training import Training, new_training
from tests.prove.public.data import PACKAGES
from tests.prove.public.imported import argosy, imported
from tests.prove.public.sources import JOBS, Job
from tests.prove.record import STYLE, Record

COLUMNS = ["kind", "source", "pods", "ended by", "resumed from step", "its script then said", "trained to step",
           "committed by", "held", "error"]  # fmt: skip
CODE = "/argosy/workspace"
"""Where pods have the code."""
RUN = {"resources": {"cpu": "50m", "memory": "2Gi"}}
TODO = [job for job in JOBS if job.begun]
COUNT = len(TODO)
NEEDS = ("ARGOSY_PUBLIC", PACKAGES)
NOTE = """\
In an Argo Workflow on a cluster, the pods made by the operator that the kind is of; what is changed in each stands in
[public jobs](proof-public-jobs.md). Their image is the tests' own."""


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The jobs that are not recorded yet; 0 when all that were done held."""
    style = os.environ.get(STYLE, "")
    jobs = [job for job in TODO if style in ("", job.kind)]
    record = Record("public-jobs-cluster", seed, style=style)
    cluster = Cluster()
    with cluster.lent(), runtimes.operators(cluster):
        record.go_on(
            [jobs[number] for number in record.left(min(count, len(jobs)))], lambda job: _case(cluster, job), minutes
        )
    title = "Published jobs in the pods of their operators, killed and gone on"
    return record.told(title, COLUMNS, count=0, note=NOTE)


def _case(cluster: Cluster, job: Job) -> dict[str, Any]:
    told = {"kind": job.kind, "source": job.place}
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("public") as namespace:
        training = new_training(cluster, namespace, Path(folder) / "run")
        try:
            return {**told, **_run(training, job)}
        except (AssertionError, ClusterError, subprocess.CalledProcessError) as error:
            print(error, flush=True)
            return {**told, "held": False, "error": " ".join(str(error).split())[:200]}


def _run(training: Training, job: Job) -> dict[str, Any]:
    training.name = _submit(training, job)
    training.until(f"{job.begun} in a log", lambda: _found(job.begun, training), 240)
    victim = max(training.pods(), key=lambda pod: pod["metadata"]["name"])
    made = [pod["metadata"]["name"].partition("-a1-")[2] for pod in training.pods()]
    training.execute(victim, "pkill", "-9", "-f", f"^[^ ]*python {job.script}")
    training.until("the next restart", lambda: len(training.events("restart_began")) == 2)
    said: list[str] = []
    if job.says:
        training.until(f"{job.says} in a log", lambda: said.extend(_found(job.says, training)) or said)
    assert training.ended(600) == "Succeeded", training.tale()
    (killed,) = (event.fields for event in training.events("restart_ended") if event.fields["cause"] != "none")
    _, last = (event.fields for event in training.events("restart_began"))
    final = training.events("checkpoint_committed")[-1].fields
    assert final["final"], training.tale()
    assert int(last["restored_step"]) > 0 or not job.says, training.tale()
    return {
        "pods": ", ".join(sorted(made)),
        "ended by": f"signal {killed['signal']} of rank {killed['rank']}",
        "resumed from step": last["restored_step"] if job.says else "none: its script reads no checkpoint",
        "its script then said": "".join(said),
        "trained to step": max((int(event.fields["step"]) for event in training.events("step")), default=0),
        "committed by": final.get("pod", "").partition("-a1-")[2],
        "held": True,
    }


def _submit(training: Training, job: Job) -> str:
    """The run's name, once it was given to the cluster."""
    cluster, folder = training.cluster, training.folder
    run = imported(job, folder, CODE)
    run.pop("image", None)
    run["gang"] |= RUN
    run["gang"].get("pod", {}).pop("image_pull_policy", None)  # there is no registry
    run |= {"secrets": ["s3"], "storage": {"uri": f"{training.bucket}/store"}}
    run["env"]["PYTHONPATH"] = f"{images.CODE}:{run['env']['PYTHONPATH']}"  # the image has argosy by this variable
    run["env"] |= {"AWS_ENDPOINT_URL": cluster.s3_endpoint, "AWS_REGION": "us-east-1"}
    (folder / "run.toml").write_text(tomlkit.dumps(run))
    os.environ.update(training.environment)
    argosy(folder, "compile", "run.toml", "-o", "workflow.yaml", "--push")
    training.workflow = cluster.submit(folder / "workflow.yaml", training.namespace)
    return str(run["name"])


def _found(text: str, training: Training) -> list[str]:
    """The first place in what the gang's pods wrote so far that is like ``text``, if any."""
    found = re.search(text, _logs(training))
    return [found[0]] if found else []


def _logs(training: Training) -> str:
    phase = training.cluster.workflow(training.workflow, training.namespace).get("status", {}).get("phase")
    assert phase not in ("Failed", "Error"), training.tale()
    texts = []
    for pod in training.pods():
        if pod["status"]["phase"] == "Running":
            texts.append(training.kubectl("logs", pod["metadata"]["name"], "-c", main_container(pod)))
    return "\n".join(texts)
