"""What people write without argosy: one Argo step that creates a JobSet with torchrun in it and waits for its end."""

from __future__ import annotations

from typing import Any

import yaml

from tests.cluster import images

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def workflow(name: str, script: str, *arguments: str) -> list[dict[str, Any]]:
    """A ConfigMap with the script, and the Workflow, for two nodes with one rank each."""
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"train.py": script}}
    resource = {
        "action": "create",
        "setOwnerReference": True,
        "successCondition": "status.terminalState == Completed",
        "failureCondition": "status.terminalState == Failed",
        "manifest": yaml.safe_dump(_jobset(name, arguments)),
    }
    spec = {
        "entrypoint": "train",
        "serviceAccountName": "argosy",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "templates": [{"name": "train", "resource": resource}],
    }
    return [code, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}]


def _jobset(name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    torchrun = [
        "python", "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1",
        f"--master-addr={name}-node-0-0.{name}", "--master-port=29500", "/code/train.py", *arguments,
    ]  # fmt: skip
    container = {
        "name": "main",
        "image": images.project_names()[1],
        "command": torchrun,
        "workingDir": "/work",
        "env": [{"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}],
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "code", "mountPath": "/code"}, {"name": "work", "mountPath": "/work"}],
    }
    volumes = [{"name": "code", "configMap": {"name": name}}, {"name": "work", "emptyDir": {}}]
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    job = {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"spec": pod},
    }
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}],
    }
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}
