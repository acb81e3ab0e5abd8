"""A run of the train step as the engine starts it: a real process, real pods, a file store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract import env
from argosy.steps.contract.arguments import LaunchArgs, TrainArgs
from argosy.steps.contract.objects import SPARES_ANNOTATION
from argosy.steps.pods import processes
from argosy.steps.pods.leftovers import sweep
from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from argosy.workflows.code import pack, push
from tests.starts import Started

CLIENT = Path(__file__).with_name("node_client.py")


def jobset(nnodes: int, command: list[str], spares: int = 0) -> dict[str, Any]:
    """A small JobSet as the compiler renders it."""
    container = {
        "name": "main",
        "image": "none",
        "command": command,
        "volumeMounts": [{"name": "work", "mountPath": "/argosy/workspace"}, {"name": "shm", "mountPath": "/dev/shm"}],
    }
    volumes = [{"name": "work", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}]
    pod = {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}
    pods = nnodes + spares
    job = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": pod}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"generateName": "r-", "annotations": {SPARES_ANNOTATION: str(spares)} if spares else {}},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]},
    }


@dataclass
class Rig:
    """One run: start it, wait for it, look at what it left."""

    folder: Path
    token: str
    plan: dict[str, Any]
    nnodes: int = 2
    spares: int = 0
    inject: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | Started | None = None
    command: list[str] | None = None
    """What the pods run; the client without torch by default."""
    nodes: int = 0
    """Virtual nodes of the machine; 0: one more than the gang has."""
    lifeline: int | None = None
    kill_at: str = ""
    """The next supervisor dies at this write; see ``killed_at.py``."""
    program: list[str] | None = None
    """What runs the train step instead of its module."""
    environ: dict[str, str] = field(default_factory=dict)
    """Further variables of the supervisor, and so of its pods."""
    late: list[list[list[Any]]] | None = None
    """How each gang in turn comes to its pods; see ``late_host.py``."""

    @property
    def local(self) -> Path:
        return self.folder / "state/runs/r-abc"

    @property
    def args(self) -> TrainArgs:
        given: dict[str, Any] = {
            "check_in_timeout_seconds": 20, "heartbeat_timeout_seconds": 15, "hang_timeout_seconds": 30,
            "grace_seconds": 5, "backoff_seconds": 0.05, "min_nnodes": self.nnodes, **self.options,
        }  # fmt: skip
        return TrainArgs(
            store_uri=self.plan["store"], name="r", workflow="r-abc",
            gang=str(self.folder / "gang.yaml"), **{"workflow_uid": "0123456789abcdef", **given},
        )  # fmt: skip

    def trains(
        self, script: str, *words: object, include: Sequence[str] = (), before: Sequence[str] = (), **fields: Any
    ) -> None:
        """Pods run ``launch`` with this script, which is told ``words``. ``include``: what it saves below ``out``, if
        it never heard of us; ``before``: words before Python's; ``fields``: others of ``launch``.
        """
        code = self.folder / "code"
        code.mkdir()
        (code / "train.py").write_text(script)
        archive = pack(code)
        push(archive, open_store(self.plan["store"]), "r")
        opaque = {"checkpoint_mode": "opaque", "checkpoint_path": "out", "checkpoint_include": tuple(include)}
        given = {"grace_seconds": 5, **(opaque if include else {}), **fields}
        args = LaunchArgs(
            store_uri=self.plan["store"], name="r", script="train.py", arg=tuple(map(str, words)),
            code_digest=archive.digest, **given,
        )  # fmt: skip
        self.command = [*before, sys.executable, "-m", LaunchArgs.MODULE, *args.to_argv()]

    def start(self) -> subprocess.Popen[bytes] | Started:
        (self.folder / "plan.json").write_text(json.dumps(self.plan))
        command = self.command or [sys.executable, str(CLIENT), str(self.folder / "plan.json")]
        (self.folder / "gang.yaml").write_text(yaml.safe_dump(jobset(self.nnodes, command, self.spares)))
        environ = {
            "PATH": os.environ["PATH"],
            env.GANG_HOST: "processes",
            env.LOCAL_DIR: str(self.local),
            env.POD_TOKEN: self.token,
            env.MOUNTS: json.dumps({"/argosy": str(self.folder / "step"), "/dev": str(self.folder / "step/dev")}),
            env.INJECT: json.dumps(self.inject),
            "ARGO_PROGRESS_FILE": "/argosy/progress",
            **self.environ,
        }
        if self.nodes:
            environ[env.NODES] = str(self.nodes)
        if self.lifeline is not None:
            environ[env.LIFELINE_FD] = str(self.lifeline)
        log = (self.folder / "supervisor.log").open("ab")
        here = Path(__file__).parent
        program = [str(here / "killed_at.py"), self.kill_at] if self.kill_at else ["-m", TrainArgs.MODULE]
        program = self.program or program
        if self.late is not None:
            program = [str(here / "late_host.py"), json.dumps(self.late)]
        argv = [*program, *self.args.to_argv()]
        if self.lifeline is None and program[0] != "-c":
            self.process = Started(*argv, env=environ, log=log.fileno())
        else:
            fds = () if self.lifeline is None else (self.lifeline,)
            self.process = subprocess.Popen([sys.executable, *argv], env=environ, stdout=log, stderr=log, pass_fds=fds)
        log.close()
        return self.process

    def run(self, seconds: float = 60) -> int:
        return self.start().wait(seconds)

    def run_killed(self, at: str, seconds: float = 60) -> None:
        """Run a supervisor that is killed when it has written what matches ``at``."""
        self.kill_at = at
        assert self.run(seconds) == -signal.SIGKILL, f"{at} was never written; {self.log()}"
        self.kill_at = ""

    def output(self, name: str) -> str:
        return (self.folder / "step/outputs" / name).read_text()

    def events(self, kind: str) -> list[Event]:
        return [event for event in read_events(open_store(self.plan["store"]), "r/runs/r-abc") if event.kind == kind]

    def assignments(self) -> list[dict[str, Any]]:
        lines = (Path(self.plan["shared"]) / "assignments").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def until(self, condition: Callable[[], Any], seconds: float = 90) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"never came true; {self.log()}"
            time.sleep(0.02)
        return found

    def steps(self, index: int) -> list[int]:
        path = Path(self.plan["shared"]) / f"steps-{index}"
        return [int(line.split()[2]) for line in path.read_text().splitlines()] if path.exists() else []

    def log(self) -> str:
        return (self.folder / "supervisor.log").read_text()

    def processes(self) -> set[int]:
        return processes.carrying(env.POD_TOKEN, self.token)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    token = f"test-{uuid.uuid4().hex}"
    shared = tmp_path / "shared"
    shared.mkdir()
    plan: dict[str, Any] = {
        "steps": 12, "step_seconds": 0.02, "commit_every": 3, "final": True, "store": f"file://{tmp_path}/store",
        "prefix": "r/runs/r-abc", "shared": str(shared),
    }  # fmt: skip
    made = Rig(tmp_path, token, plan)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.send_signal(signal.SIGKILL)
        made.process.wait()
    sweep(token)
