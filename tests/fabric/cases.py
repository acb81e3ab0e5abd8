"""A gang on each fabric, in the ways it can be had."""

from __future__ import annotations

from typing import Any

import yaml

from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.run import TrainingRun

GANGS: dict[str, dict[str, Any]] = {
    "single-node": {"fabric": "single-node", "nnodes": 1, "fabric_parameters": {"gpu": "h100"}},
    "tcp": {"fabric": "tcp", "fabric_parameters": {"interface": "eth0", "sockets": "4x4"}},
    "ib-sriov": {"fabric": "ib-sriov", "fabric_parameters": {"rdma_resource": "rdma/ib", "nics": 8, "rate": "ndr"}},
    "ib-sriov-root": {
        "fabric": "ib-sriov",
        "fabric_parameters": {"rdma_resource": "rdma/vf", "nics": 4, "memlock": "root", "hca": "=mlx5_0,mlx5_3"},
    },
    "ib-shared": {"fabric": "ib-shared", "fabric_parameters": {"rdma_resource": "rdma/shared_ib", "nics": 8}},
    "ib-coreweave": {"fabric": "ib-coreweave"},
    "azure-nd": {
        "fabric": "azure-nd",
        "fabric_parameters": {
            "shape": "ndv5",
            "device_plugin": "sriov",
            "rdma_resource": "rdma/ib",
            "topology_config_map": "ndv5-topology",
        },
    },
    "azure-nd-shared": {
        "fabric": "azure-nd",
        "fabric_parameters": {"shape": "ndv4", "device_plugin": "shared", "rdma_resource": "rdma/shared_ib"},
    },
    "aws-efa": {"fabric": "aws-efa", "fabric_parameters": {"shape": "p5"}},
    "aws-efa-gb200": {"fabric": "aws-efa", "fabric_parameters": {"shape": "p6e-gb200"}},
    "gcp-a3-high": {"fabric": "gcp-a3-high", "fabric_parameters": {"network_prefix": "vpc"}},
    "gcp-a3-mega": {"fabric": "gcp-a3-mega", "fabric_parameters": {"network_prefix": "vpc"}},
    "gcp-a3u-a4": {"fabric": "gcp-a3u-a4", "fabric_parameters": {"shape": "a4", "network_prefix": "rdma-"}},
    "gcp-a3u-a4-dra": {
        "fabric": "gcp-a3u-a4",
        "fabric_parameters": {"shape": "a3-ultra", "attach": "dra", "claim_template": "all-mrdma"},
    },
    "oci-roce-host": {"fabric": "oci-roce", "fabric_parameters": {"shape": "BM.GPU.H200.8", "mode": "host"}},
    "oci-roce-vf": {"fabric": "oci-roce", "fabric_parameters": {"shape": "BM.GPU4.8", "mode": "vf"}},
    "gb200-mnnvl": {
        "fabric": "gb200-mnnvl",
        "fabric_parameters": {"imex": "dra", "claim_template": "train-channel", "rdma_resource": "rdma/ib"},
    },
    "gb200-mnnvl-host": {"fabric": "gb200-mnnvl", "fabric_parameters": {"imex": "host"}},
}


def run_on(gang: dict[str, Any], env: dict[str, str] | None = None, gpus: int = 8) -> TrainingRun:
    """Two whole nodes of eight GPUs, unless ``gang`` says otherwise."""
    resources = {"cpu": "32", "memory": "512Gi", "gpu": gpus}
    shape = {"nnodes": 2, "nproc_per_node": gpus, "resources": resources, **gang}
    return TrainingRun(name="llm", script="train.py", code="", env=env or {}, gang=shape)


def case(name: str, env: dict[str, str] | None = None) -> TrainingRun:
    """The run of :data:`GANGS`, on nodes with as many GPUs as they have."""
    return run_on(GANGS[name], env, 4 if "gb200" in name else 8)


def bare(name: str) -> TrainingRun:
    """The same run without its fabric."""
    plain = {key: value for key, value in GANGS[name].items() if not key.startswith("fabric")}
    return run_on(plain, gpus=4 if "gb200" in name else 8)


def template(run: TrainingRun) -> dict[str, Any]:
    """The pod template inside the gang's manifest, as the cluster reads it."""
    job = yaml.safe_load(gang_yaml(run))["spec"]["replicatedJobs"][0]["template"]["spec"]
    found: dict[str, Any] = job["template"]
    return found


def main(run: TrainingRun) -> dict[str, Any]:
    """The ranks' container."""
    found: dict[str, Any] = template(run)["spec"]["containers"][0]
    return found


def env_of(run: TrainingRun) -> dict[str, str]:
    """Its environment."""
    return {each["name"]: each["value"] for each in main(run)["env"]}
