"""Ray Train on a real KubeRay, by the launcher ray: a worker is killed, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.training import OPAQUE, new_training
from tests.supervisor.test_ray import EXAMPLE, TRAIN

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("nnodes", [pytest.param(1, marks=pytest.mark.variant), 2])
def test_ray_train_in_a_rayjob_is_killed_and_goes_on(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path, nnodes: int
) -> None:
    """On one node the checkpoints are the script's own, on two the Checkpointer's, in the function of the workers."""
    checkpoint = f'{OPAQUE}include = ["*/checkpoint_*/**/*", "*/checkpoint_manager_snapshot.json"]'
    script, args = (EXAMPLE / "train.py").read_text(), ("--epochs", "40", "--batches", "600")
    if nnodes == 2:
        checkpoint, script, args = "", TRAIN, ("80", "0")
    tables = {"gang": 'runtime = "rayjob"\nlauncher = "ray"', "checkpoint": checkpoint}
    training = new_training(
        cluster, namespace, tmp_path / "run", name="ray", nnodes=nnodes, memory="4Gi", tables=tables,
        script=script, args=args,
    )  # fmt: skip
    training.submit()
    training.until_committed(3)
    pod = max(training.pods(), key=lambda each: "worker" in each["metadata"]["name"])
    training.execute(pod, "pkill", "-9", "-o", "-f", "^ray::RayTrainWorker")
    assert training.ended(600) == "Succeeded", training.tale()
    (killed,) = (event.fields for event in training.events("restart_ended"))
    assert "a worker of Ray on this node" in killed["quote"], training.tale()
    assert killed["rank"] == nnodes - 1
    first, second = (event.fields["restored_step"] for event in training.events("restart_began"))
    assert first == 0 < int(second)
