"""A run under argosy's own supervisor and launcher, one node of this machine; no compiler, no engine, no cloud."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import yaml

from argosy.steps.contract import env
from argosy.steps.contract.arguments import LaunchArgs, TrainArgs
from argosy.steps.pods.leftovers import sweep
from argosy.steps.store import open_store

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=1")
"""Plain torchrun on this machine, whatever its name resolves to."""


class Managed:
    """``python -m tests.gpu.ranks WHAT`` as the script of a run whose store is a folder."""

    def __init__(
        self, folder: Path, what: str, environ: dict[str, str], nproc: int = 1, preload: str = "", **options: Any
    ) -> None:
        """``options`` of the train step. ``environ`` is the ranks' besides ours; ``preload``: a module they find."""
        self.folder, self.nproc = folder, nproc
        self.store = f"file://{folder}/store"
        self._environ, self._token = environ, f"gpu-{uuid.uuid4().hex}"
        args = LaunchArgs(
            store_uri=self.store, name="r", module="tests.gpu.ranks", arg=(what,), nproc_per_node=nproc,
            grace_seconds=5, preload=(preload,) if preload else (),
        )  # fmt: skip
        self._manifest = _jobset([sys.executable, "-m", LaunchArgs.MODULE, *args.to_argv()])
        given: dict[str, Any] = {
            "check_in_timeout_seconds": 120, "heartbeat_timeout_seconds": 30, "hang_timeout_seconds": 120,
            "grace_seconds": 5, "backoff_seconds": 0.05, "min_nnodes": 1, "max_same_failure": 1, "max_restarts": 1,
            **options,
        }  # fmt: skip
        self._args = TrainArgs(
            store_uri=self.store, name="r", workflow="r-abc", workflow_uid="0123456789abcdef",
            gang=str(folder / "gang.yaml"), **given,
        )  # fmt: skip

    def run(self, seconds: float) -> int:
        """The train step's exit code; -9 when its time was over. Nothing of it is left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "gang.yaml").write_text(yaml.safe_dump(self._manifest))
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_RUN")},
            **self._environ,
            env.GANG_HOST: "processes",
            env.LOCAL_DIR: str(self.folder / "state/runs/r-abc"),
            env.POD_TOKEN: self._token,
            env.MOUNTS: json.dumps({"/argosy": str(self.folder / "step"), "/dev": str(self.folder / "step/dev")}),
        }
        command = [sys.executable, "-m", TrainArgs.MODULE, *self._args.to_argv()]
        with (self.folder / "supervisor.log").open("ab") as log:
            process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            sweep(self._token)

    def verdict(self) -> dict[str, Any]:
        """The newest verdict; {}: there is none."""
        store = open_store(self.store)
        keys = sorted(info.key for info in store.list("r/runs/r-abc/attempts") if info.key.endswith("verdict.json"))
        return dict(json.loads(store.get(keys[-1]))) if keys else {}

    def log(self, each: int = 1500) -> str:
        """The last words of the supervisor and of the pods, at most so many characters of each."""
        paths = [self.folder / "supervisor.log", *sorted(self.folder.rglob("*.log"))]
        return "\n".join(path.read_text(errors="replace")[-each:] for path in paths if path.is_file())[-4 * each :]


def _jobset(command: list[str]) -> dict[str, Any]:
    """As the compiler renders it, of one node."""
    mounts = [{"name": "work", "mountPath": "/argosy/workspace"}, {"name": "shm", "mountPath": "/dev/shm"}]
    container = {"name": "main", "image": "none", "command": command, "volumeMounts": mounts}
    volumes = [{"name": "work", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}]
    pod = {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}
    job = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pod}
    spec = {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]}
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return {**kind, "metadata": {"generateName": "r-"}, "spec": spec}
