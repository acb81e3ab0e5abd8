"""The whole chain, from the dataset to the pointer, over S3 on the cluster: the example that `make demo` runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from argosy.steps.checkpoint.store import CheckpointStore
from tests.cluster.client import phases
from tests.cluster.images import CHECKOUT
from tests.cluster.training import ARGOSY, Training

EXAMPLE = CHECKOUT / "examples" / "stdlib-gpt"
CHAIN = ("snapshot", "admit", "stage", "train", "evaluate", "gate", "promote")


class Chain(Training):
    """The example itself, of ``steps`` steps; ``tables["gang"]`` says how its gang is made."""

    def compile(self) -> Path:
        """Its data written, its code pushed."""
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns(".argosy", "__pycache__"))
        command = [sys.executable, "prepare.py", "--out", f"{self.bucket}/datasets/stdlib-gpt", "--limit-mb", "2"]
        subprocess.run(command, cwd=self.folder, env=self.environment, check=True, timeout=120)
        variables = f'AWS_ENDPOINT_URL = "{self.cluster.s3_endpoint}"\nAWS_REGION = "us-east-1"'
        tables = f'secrets = ["s3"]\n\n[env]\n{variables}\n\n[storage]\nuri = "{self.bucket}/store"\n\n[dataset]'
        text = (self.folder / "run.toml").read_text().replace("file:///mnt/argosy", self.bucket)
        for ours, shorter in (
            ('"60"', f'"{self.steps}"'),
            ("floor = 4.0", "floor = 8.0"),
            ('cpu = "1"', 'cpu = "50m"'),
            ("[dataset]", tables),
            ("[gang]\n", f"[gang]\n{self.tables.get('gang', '')}\n"),
        ):
            assert ours in text, ours
            text = text.replace(ours, shorter, 1)
        (self.folder / "run.toml").write_text(text)
        command = [*ARGOSY, "compile", "run.toml", "-o", "workflow.yaml", "--push"]
        subprocess.run(command, cwd=self.folder, env=self.environment, check=True, timeout=120)
        return self.folder / "workflow.yaml"

    def unfinished(self) -> list[str]:
        """Steps of the chain that did not succeed."""
        reached = phases(self.cluster.workflow(self.workflow, self.namespace))
        return [step for step in CHAIN if reached.get(step) != "Succeeded"]

    def run_here(self) -> str:
        """The same YAML on this machine, from the same bucket; the name of its workflow."""
        keys = {f"ARGOSY_SECRET_S3_{key}": value for key, value in self.cluster.s3_environment.items() if "KEY" in key}
        environment = {**os.environ, **self.cluster.s3_environment, **keys}
        command = [*ARGOSY, "run", "workflow.yaml", "--json"]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(json.loads(done.stdout)["workflow"])

    def final_bytes(self, workflow: str) -> dict[str, str]:
        """File -> SHA-256 of the last checkpoint of a run in this store."""
        with self.store() as store:
            newest = CheckpointStore(store, f"{self.name}/runs/{workflow}").newest()
        assert newest is not None
        assert (newest.step, newest.final) == (self.steps, True)
        return {file.path: file.sha256 for file in newest.files}
