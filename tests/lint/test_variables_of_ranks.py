"""What mpirun passes on is judged by the workers' pods, and what is claimed is not missing."""

from __future__ import annotations

import yaml

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text

WORKER = {"requests": {"nvidia.com/gpu": 8}, "limits": {"nvidia.com/gpu": 8, "rdma/ib": 1}}


def rules(*documents: object) -> set[str]:
    return {each.rule for each in lint([read_text(yaml.safe_dump_all(documents).encode(), "a.yaml")])}


def mpi_job(flags: str, worker: dict[str, object], env: list[dict[str, str]] | None = None) -> dict[str, object]:
    launcher = {"name": "l", "image": "i:1", "command": ["bash", "-c", f"mpirun -np 16 {flags} python t.py"]}
    roles = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{**launcher, "env": env or []}]}}},
        "Worker": {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "w", "image": "i:1", "resources": worker}]}},
        },
    }
    metadata = {"name": "m"}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": metadata,
        "spec": {"mpiReplicaSpecs": roles},
    }


def test_the_workers_devices_count_for_what_mpirun_passes_on() -> None:
    assert "NCCL036" not in rules(mpi_job("-x NCCL_NET=IB", WORKER))
    assert "NCCL036" in rules(mpi_job("-x NCCL_NET=IB", {"limits": {"nvidia.com/gpu": 8}}))
    assert "NCCL034" in rules(mpi_job("-x NCCL_IB_DISABLE=1", WORKER))


def test_what_only_the_launcher_has_is_not_passed_on() -> None:
    env = [{"name": "NCCL_IB_DISABLE", "value": "1"}]
    assert "NCCL048" in rules(mpi_job("", WORKER, env))
    assert "NCCL034" in rules(mpi_job("-x NCCL_IB_DISABLE", WORKER, env))


def test_a_claimed_network_device_is_no_missing_one() -> None:
    resources: dict[str, object] = {"limits": {"nvidia.com/gpu": 8}}
    container = {"name": "t", "image": "i:1", "env": [{"name": "NCCL_NET", "value": "IB"}], "resources": resources}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    assert "NCCL036" in rules(pod)
    resources["claims"] = [{"name": "nics"}]
    assert "NCCL036" not in rules(pod)


def test_the_images_nccl_decides_which_names_are_read() -> None:
    def pod(image: str) -> dict[str, object]:
        container = {"name": "t", "image": image, "env": [{"name": "NCCL_RAS_ADDR", "value": "localhost:1"}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}

    assert "NCCL010" in rules(pod("pytorch/pytorch:2.4.1-cuda12.4-cudnn9-runtime"))
    assert "NCCL010" not in rules(pod("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"))
