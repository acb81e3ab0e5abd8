"""A small training on the cluster that tests can hurt: two nodes, a plain script, a commit after nearly every step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.cluster.containers import main_container
from argosy.steps.runlog import Event
from argosy.steps.store import open_store
from argosy.steps.store.base import ObjectStore
from argosy.workflows.cli.follower import EventFollower
from tests.cluster.cluster import Cluster
from tests.cluster.progress import wait_for

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
SCRIPT = '''\
"""Counts, all ranks in step. Each step is saved whole and said, so that a test sees which were done twice."""
import json, os, sys, time
from pathlib import Path

import torch
import torch.distributed as dist

steps, seconds = int(sys.argv[1]), float(sys.argv[2])
dist.init_process_group("gloo")
saved = Path("out/state.json")
state = json.loads(saved.read_text()) if saved.exists() else {"step": 0, "sum": 0}
while state["step"] < steps:
    time.sleep(seconds)
    step = state["step"] + 1
    ones = torch.ones(1)
    dist.all_reduce(ones)
    assert ones.item() == dist.get_world_size()
    state = {"step": step, "sum": state["sum"] + step}
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if dist.get_rank() == 0:
        saved.parent.mkdir(exist_ok=True)
        part = saved.with_suffix(".part")
        part.write_text(json.dumps(state))
        part.replace(saved)
dist.destroy_process_group()
'''
RUN = """\
name = "{name}"
script = "train.py"
args = {args}
secrets = ["s3"]
{top}

[storage]
uri = "{bucket}/store"

[env]
AWS_ENDPOINT_URL = "{endpoint}"
AWS_REGION = "us-east-1"

[gang]
nnodes = {nnodes}
resources.cpu = "50m"
resources.memory = "{memory}"
{gang}

[checkpoint]
{checkpoint}

[deadlines]
heartbeat_seconds = 15
grace_seconds = 5
{deadlines}

[retry]
backoff_seconds = 1
{retry}
"""


OPAQUE = 'mode = "opaque"\npath = "out"\n'


def run_toml(**fields: object) -> str:
    """``RUN`` with these in it; of our script where nothing else is said."""
    ours = {"top": "", "gang": "", "deadlines": "", "retry": "", "checkpoint": f'{OPAQUE}include = ["state.json"]'}
    return RUN.format(**{"memory": "2Gi", **ours, **fields})


@dataclass
class Training:
    """One run, submitted with the real ``argo``."""

    cluster: Cluster
    namespace: str
    folder: Path
    name: str = "hurt"
    steps: int = 40
    seconds: float = 0.5
    tables: dict[str, str] = field(default_factory=dict)
    """Further lines of the tables ``gang``, ``deadlines`` and ``retry``, of the ``top`` and, in place of our script's,
    of ``checkpoint``."""
    workflow: str = ""
    script: str = SCRIPT
    args: tuple[str, ...] = ()
    """Of another script than ours."""
    nnodes: int | str = 2
    memory: str = "2Gi"
    """Of each node, as a quantity."""
    patience: float = 1.0
    """Times the usual wait: on a machine that has other things to do everything comes later."""
    _followers: dict[str, EventFollower] = field(default_factory=dict)
    _heard: list[Event] = field(default_factory=list)

    @property
    def bucket(self) -> str:
        """The store is a bucket named like the namespace."""
        return f"s3://{self.namespace}"

    @property
    def environment(self) -> dict[str, str]:
        """Of programs that ask the bucket or the cluster."""
        return {**os.environ, **self.cluster.s3_environment, "KUBECONFIG": str(self.cluster.kubeconfig)}

    def compile(self) -> Path:
        """The YAML, its code pushed."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "train.py").write_text(self.script)
        text = run_toml(
            name=self.name,
            nnodes=json.dumps(self.nnodes),
            memory=self.memory,
            args=json.dumps(self.args or [str(self.steps), str(self.seconds)]),
            bucket=self.bucket,
            endpoint=self.cluster.s3_endpoint,
            **self.tables,
        )
        (self.folder / "run.toml").write_text(text)
        command = [*ARGOSY, "compile", "run.toml", "-o", "workflow.yaml", "--push"]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return self.folder / "workflow.yaml"

    def submit(self) -> str:
        """``argo submit FILE`` and nothing else; the workflow's name."""
        self.workflow = self.cluster.submit(self.compile(), self.namespace)
        return self.workflow

    # What it has done.

    @contextmanager
    def store(self) -> Iterator[ObjectStore]:
        """The run's store, asked with the gateway's keys."""
        with pytest.MonkeyPatch.context() as patched:
            for key, value in self.cluster.s3_environment.items():
                patched.setenv(key, value)
            yield open_store(f"{self.bucket}/store")

    def events(self, *kinds: str) -> list[Event]:
        """Of all runs of this name, by time. What was read once is kept: tests ask twice a second."""
        with self.store() as store:
            for run in {each.key.split("/")[2] for each in store.list(f"{self.name}/runs/")}:
                prefix = f"{self.name}/runs/{run}"
                self._heard += self._followers.setdefault(run, EventFollower(store, prefix)).new()
        self._heard.sort(key=lambda event: event.time)
        return [event for event in self._heard if event.kind in kinds] if kinds else [*self._heard]

    def committed(self) -> int:
        """The newest step that was committed."""
        return max((int(event.fields["step"]) for event in self.events("checkpoint_committed")), default=0)

    def until(self, what: str, condition: Callable[[], Any], seconds: float = 180) -> Any:
        """Wait for it; the run's own tale when it does not come."""
        try:
            return wait_for(what, condition, seconds * self.patience, every=0.5)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.tale()}") from None

    def until_committed(self, step: int) -> None:
        """Until a step of ``step`` or later is committed."""

        def committed() -> bool:
            phase = self.cluster.workflow(self.workflow, self.namespace).get("status", {}).get("phase")
            assert phase not in ("Failed", "Error"), self.tale()
            return self.committed() >= step

        self.until(f"a commit of step {step}", committed)

    def ended(self, seconds: float = 300) -> str:
        """The workflow's phase once it has one that lasts."""

        def phase() -> str:
            found = self.cluster.workflow(self.workflow, self.namespace).get("status", {}).get("phase", "")
            return found if found in ("Succeeded", "Failed", "Error") else ""

        self.until(f"the end of {self.workflow}", phase, seconds)
        return phase()

    def tale(self) -> str:
        """The events, for people."""
        skipped = ("step", "checkpoint_committed")
        lines = [
            f"{event.time:.1f} {event.kind} {event.fields}" for event in self.events() if event.kind not in skipped
        ]
        return "\n".join([*lines, f"committed: {self.committed()}", json.dumps(self.phases())])

    def phases(self) -> dict[str, str]:
        """Of the workflow's nodes, with what was said of those that failed."""
        nodes = self.cluster.workflow(self.workflow, self.namespace).get("status", {}).get("nodes", {}).values()
        return {node["displayName"]: f"{node.get('phase')} {node.get('message', '')}".strip() for node in nodes}

    # What is there.

    def pods(self, *, role: str = "") -> list[dict[str, Any]]:
        """Pods of the gang, or the supervisor's (``role="supervisor"``), that have not ended."""
        wanted = f"argosy.dev/role={role}" if role else "argosy.dev/gang"
        selector = f"workflows.argoproj.io/workflow={self.workflow},{wanted}"
        found = self.cluster.kubectl("get", "pods", "-n", self.namespace, "-l", selector, "-o", "json")
        return [pod for pod in json.loads(found)["items"] if pod["status"]["phase"] in ("Pending", "Running")]

    def execute(self, pod: dict[str, Any], *command: str) -> int:
        """Run a command in the pod; that it ends the container is no error. Its exit code."""
        name = pod["metadata"]["name"]
        words = ["exec", "-n", self.namespace, name, "-c", main_container(pod), "--", *command]
        kubectl = [self.cluster.bin / "kubectl", f"--kubeconfig={self.cluster.kubeconfig}"]
        return subprocess.run([*kubectl, *words], timeout=60).returncode

    def kubectl(self, *words: str) -> str:
        """In the run's namespace."""
        return self.cluster.kubectl(*words, "-n", self.namespace)

    def leftovers(self, *kinds: str) -> list[str]:
        """Objects of gangs that are still there; ``kinds`` are looked for besides."""
        wanted = ("jobsets.jobset.x-k8s.io", "jobs", "podgroups.scheduling.k8s.io", *kinds)
        found = self.kubectl("get", ",".join(wanted), "-o", "name").split()
        return found + [pod["metadata"]["name"] for pod in self.pods()]

    def account(self, since: float) -> dict[str, float]:
        """What a fault at ``since`` (seconds since 1970) cost, and that no committed step was trained again.

        ``detected`` and ``resumed``: seconds from the fault to the supervisor's verdict and to the next new step (0:
        training went on); ``lost``: steps done twice.
        """
        ends = [event.time for event in self.events("restart_ended") if event.time > since]
        before = [event for event in self.events("step") if event.time <= (ends[0] if ends else since)]
        reached = max((int(event.fields["step"]) for event in before), default=0)
        again = [event for event in self.events("restart_began") if event.time > since]
        resumed = [event.time for event in self.events("step") if event.time > since and event.fields["step"] > reached]
        newest = 0
        for event in self.events("checkpoint_committed", "restart_began"):
            if event.kind == "checkpoint_committed":
                newest = max(newest, int(event.fields["step"]))
            else:
                assert int(event.fields["restored_step"]) >= newest, f"committed steps were lost\n{self.tale()}"
        lost = reached - int(again[0].fields["restored_step"]) if again else 0
        return {
            "detected": round(ends[0] - since, 1) if ends else 0.0,
            "resumed": round(resumed[0] - since, 1) if resumed else 0.0,
            "lost": float(max(lost, 0)),
        }


def new_training(cluster: Cluster, namespace: str, folder: Path, **options: Any) -> Training:
    """A run with a bucket and keys of its own."""
    cluster.create_bucket(namespace)
    cluster.create_s3_secret(namespace)
    return Training(cluster, namespace, folder, **options)


def now() -> float:
    """The clock of all nodes: they are this machine."""
    return time.time()
