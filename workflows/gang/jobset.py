"""The JobSet of a gang: one pod per node, nothing that restarts on its own.

The supervisor reads it from a raw artifact and changes only identity (names, labels, the channel's address and
token), excluded nodes and, when elastic, the number of nodes. One owner of restarts: ``maxRestarts`` and
``backoffLimit`` are 0, always.
"""

from __future__ import annotations

from typing import Any

from argosy.steps.contract.arguments import LaunchArgs
from argosy.workflows.gang.cache import cache_volume, profile_labels
from argosy.workflows.gang.fabric import fabric_env, fabric_pod, fabric_resources, fabric_security
from argosy.workflows.gang.launch_args import launch_args
from argosy.workflows.gang.pod import (
    POD_SECURITY,
    claim_volume,
    environment,
    environment_sources,
    pod_folders,
)
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.yaml_text import to_yaml

API_VERSION = "jobset.x-k8s.io/v1alpha2"
RUN_LABEL = "argosy.dev/run"
FABRIC_ANNOTATION = "argosy.dev/fabric"
"""Whoever reads the manifest, lint among them, learns why the variables are as they are."""
LOST_NODE_SECONDS = 30
"""The channel notices a lost node within heartbeat_seconds; Kubernetes' own 300 s would keep its pod and name."""
COMMIT_SECONDS = 30
"""After the script's grace: time for launch to commit what was saved."""
_TAINTS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def jobset_yaml(run: TrainingRun, code_digest: str = "") -> str:
    """:func:`jobset` as YAML text: printable ASCII without Argo placeholders."""
    return to_yaml(jobset(run, code_digest))


def jobset(run: TrainingRun, code_digest: str = "") -> dict[str, Any]:
    """The JobSet; ``metadata.name`` is a stand-in that the supervisor replaces for every gang.

    ``code_digest`` is the SHA-256 of the code archive; empty: the code is in the image.
    """
    nnodes = run.gang.max_nnodes
    labels = {RUN_LABEL: run.name}
    job = {
        "completionMode": "Indexed",
        "completions": nnodes,
        "parallelism": nnodes,
        "backoffLimit": 0,
        "template": {"metadata": _metadata(run, labels), "spec": _pod(run, code_digest)},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "metadata": {"name": run.name, "labels": labels},
        "spec": {
            # Ranks find each other before any of them is ready.
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}],
        },
    }


def _metadata(run: TrainingRun, labels: dict[str, str]) -> dict[str, Any]:
    fabric, pod = run.fabric, run.gang.pod
    named = {FABRIC_ANNOTATION: fabric.name} if fabric.name else {}
    annotations = {**named, **fabric.annotations, **pod.annotations}
    labels = {**fabric.labels, **pod.labels, **labels, **profile_labels(run)}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def _pod(run: TrainingRun, code_digest: str) -> dict[str, Any]:
    gang, fabric = run.gang, run.fabric
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": gang.shm_of(fabric)}}
    own, own_mounts = pod_folders(data="/argosy/data", workspace="/argosy/workspace", tmp="/argosy/tmp")
    claim, claim_mounts = claim_volume(run)
    cache, cache_mounts = cache_volume(run)
    container: dict[str, Any] = {
        "name": "main",
        "image": run.image,
        "command": LaunchArgs.command(),
        "args": launch_args(run, code_digest).to_argv(),
        "env": environment(run, *fabric_env(fabric)),
        "resources": fabric_resources(fabric, gang.resources),
        "securityContext": fabric_security(fabric),
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            *claim_mounts,
            *cache_mounts,
            *own_mounts,
            *fabric.mounts,
            *(volume.mount() for volume in gang.pod.volumes),
        ],
    }
    if gang.pod.image_pull_policy:
        container["imagePullPolicy"] = gang.pod.image_pull_policy
    if run.secrets:
        container["envFrom"] = environment_sources(run)
    optional = {
        "serviceAccountName": gang.service_account,
        "priorityClassName": gang.priority_class,
        "nodeSelector": dict(gang.node_selector),
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": run.deadlines.grace_seconds + COMMIT_SECONDS,
        "automountServiceAccountToken": False,
        "securityContext": POD_SECURITY,
        **{name: value for name, value in optional.items() if value},
        **fabric_pod(fabric, gang.pod),
        "tolerations": _tolerations(run),
        "containers": [container],
        "volumes": [shm, *claim, *cache, *own, *fabric.volumes, *gang.pod.volume_manifests()],
    }


def _tolerations(run: TrainingRun) -> list[dict[str, Any]]:
    given = [toleration.manifest() for toleration in run.gang.tolerations]
    named = {toleration.key for toleration in run.gang.tolerations}
    ours = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_SECONDS}
        for key in _TAINTS
        if key not in named
    ]
    return given + ours
