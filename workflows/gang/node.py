"""The pod of a gang's node, rendered: one per node, nothing that restarts on its own."""

from __future__ import annotations

from typing import Any

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import COMMIT_SECONDS
from argosy.steps.contract.objects import COSCHEDULING_GROUP, KAI_QUEUE, RUN_LABEL, VOLCANO_GROUP
from argosy.workflows.gang.cache import cache_volume, profile_labels
from argosy.workflows.gang.fabric import fabric_env, fabric_pod, fabric_resources, fabric_security
from argosy.workflows.gang.launch_args import launch_args
from argosy.workflows.gang.nearness import nearness, topology_annotations
from argosy.workflows.gang.pod import (
    POD_SECURITY,
    claim_volume,
    environment,
    environment_sources,
    pod_folders,
)
from argosy.workflows.spec.run import TrainingRun

FABRIC_ANNOTATION = "argosy.dev/fabric"
"""Whoever reads the manifest, lint among them, learns why the variables are as they are."""
SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler", "kai": "kai-scheduler"}
"""As their charts install them; gang.pod.scheduler names another."""
LOST_NODE_SECONDS = 30
"""The channel notices a lost node within heartbeat_seconds; Kubernetes' own 300 s would keep its pod and name."""
_TAINTS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def node_template(run: TrainingRun, code_digest: str, container: str = "main") -> dict[str, Any]:
    """The pod's template; ``code_digest`` is the SHA-256 of the code archive, empty when the image has the code.

    ``container`` is the name of the ranks' container.
    """
    spec = _pod(run, code_digest, container)
    if run.gang.runtime == "job":
        # The Job sets the pods' host names; with the Service's domain they resolve. JobSet sets both.
        spec["subdomain"] = run.name
    if run.gang.placement == "native":
        spec["schedulingGroup"] = {"podGroupName": run.name}
    return {"metadata": _metadata(run), "spec": spec}


def _metadata(run: TrainingRun) -> dict[str, Any]:
    fabric, pod = run.fabric, run.gang.pod
    named = {FABRIC_ANNOTATION: fabric.name} if fabric.name else {}
    grouped = run.gang.placement == "volcano" != run.gang.runtime
    group = {VOLCANO_GROUP: run.name} if grouped else {}
    annotations = {**named, **fabric.annotations, **topology_annotations(run.gang), **pod.annotations, **group}
    labels = {**fabric.labels, **pod.labels, RUN_LABEL: run.name, **profile_labels(run), **_group_labels(run)}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def _group_labels(run: TrainingRun) -> dict[str, str]:
    """How whoever places the gang knows its pods."""
    if run.gang.placement == "coscheduling":
        return {COSCHEDULING_GROUP: run.name}
    return {KAI_QUEUE: run.gang.queue} if run.gang.placement == "kai" else {}


def _pod(run: TrainingRun, code_digest: str, name: str) -> dict[str, Any]:
    gang, fabric = run.gang, run.fabric
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": gang.shm_of(fabric)}}
    own, own_mounts = pod_folders(data="/argosy/data", workspace="/argosy/workspace", tmp="/argosy/tmp")
    claim, claim_mounts = claim_volume(run)
    cache, cache_mounts = cache_volume(run)
    container: dict[str, Any] = {
        "name": name,
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
        "nodeSelector": {**gang.node_selector, **({gang.spot.label: gang.spot.value} if gang.spot else {})},
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": run.deadlines.grace_seconds + COMMIT_SECONDS,
        "automountServiceAccountToken": False,
        "securityContext": POD_SECURITY,
        **{name: value for name, value in optional.items() if value},
        **({"schedulerName": SCHEDULERS[gang.placement]} if gang.placement in SCHEDULERS else {}),
        **fabric_pod(fabric, gang.pod, nearness(run)),
        "tolerations": _tolerations(run),
        "containers": [container],
        "volumes": [shm, *claim, *cache, *own, *fabric.volumes, *gang.pod.volume_manifests()],
    }


def _tolerations(run: TrainingRun) -> list[dict[str, Any]]:
    of_spot = run.gang.spot.tolerations if run.gang.spot else ()
    given = [toleration.manifest() for toleration in (*run.gang.tolerations, *of_spot)]
    named = {toleration.key for toleration in run.gang.tolerations}
    ours = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_SECONDS}
        for key in _TAINTS
        if key not in named
    ]
    return given + ours
