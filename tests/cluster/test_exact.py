"""An exact training on two nodes that loses one of them gives the same bits as one process on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.images import CHECKOUT
from tests.cluster.training import ARGOSY, Training, new_training

EXAMPLE = CHECKOUT / "examples" / "exact"
WEIGHTS = re.compile(r"weights ([0-9a-f]{64})")
TABLES = """
secrets = ["s3"]

[storage]
uri = "{bucket}/store"

[env]
AWS_ENDPOINT_URL = "{endpoint}"
AWS_REGION = "us-east-1"
"""


class Exact(Training):
    """The example itself, with the store in S3, on two nodes with one rank each."""

    def compile(self) -> Path:
        text = (EXAMPLE / "run.toml").read_text()
        text = text.replace("nnodes = 1\nnproc_per_node = 2", 'nnodes = 2\nresources.cpu = "50m"')
        top, gang = text.split("[gang]")
        (self.folder / "run.toml").write_text(
            top + TABLES.format(bucket=self.bucket, endpoint=self.cluster.s3_endpoint) + "\n[gang]" + gang
        )
        command = [*ARGOSY, "compile", "run.toml", "-o", "workflow.yaml", "--push"]
        subprocess.run(command, cwd=self.folder, env=self.environment, check=True, timeout=60)
        return self.folder / "workflow.yaml"


def test_the_same_bits_on_two_nodes_after_a_loss_and_argo_logs_shows_every_rank(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "run", ignore=shutil.ignore_patterns(".argosy", "checkpoints", "__pycache__"))
    made = new_training(cluster, namespace, tmp_path / "run", name="exact")
    training = Exact(cluster, namespace, made.folder, name="exact")
    training.submit()
    command = [
        cluster.bin / "argo",
        "--kubeconfig",
        cluster.kubeconfig,
        "-n",
        namespace,
        "logs",
        training.workflow,
        "-f",
    ]
    with (
        (tmp_path / "logs").open("w") as target,
        subprocess.Popen([*command, "--no-color"], stdout=target) as following,
    ):
        training.until_committed(50)
        lost = training.pods()[-1]["metadata"]["name"]
        training.kubectl("delete", "pod", lost, "--wait=false")
        said = (tmp_path / "logs").read_text()
        assert all(pod["metadata"]["name"] in said for pod in training.pods()), said[-2000:]
        assert training.ended(600) == "Succeeded", training.tale()
        following.wait(60)
    assert len(training.events("gang_created")) == 2, training.tale()
    (tmp_path / "alone").mkdir()
    alone = subprocess.run(
        [sys.executable, EXAMPLE / "train.py"],
        cwd=tmp_path / "alone",
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    there, here = (WEIGHTS.findall(text) for text in ((tmp_path / "logs").read_text(), alone.stdout))
    assert here
    assert set(there) == set(here), (there, here)
