"""What a namespace needs once before runs can be submitted to it: an account, what it may do, and room to keep things.

One account for every pod of a run, because an identity in the cloud (IRSA, Workload Identity) hangs on it and the steps
and the gang read the same bucket. What it may do in the namespace is used by code of ours and of Argo only: gangs get
no API token, and the evaluation's script finds an empty folder in its place.
"""

from __future__ import annotations

from typing import Any

from argosy.steps.cluster.kinds import (
    JOB,
    JOB_SET,
    MPI_JOB,
    PYTORCH_JOB,
    RAY_JOB,
    TF_JOB,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    VOLCANO_JOB,
    XGBOOST_JOB,
    Kind,
)

ROLE = "argosy"
ENFORCE = "pod-security.kubernetes.io/enforce"
Rule = tuple[str, tuple[str, ...], tuple[str, ...], str]


def _gang(kind: Kind, runtime: str) -> Rule:
    return kind.group, (kind.plural,), ("create", "list", "watch", "delete"), f"the gang, with runtime {runtime}"


RULES: tuple[Rule, ...] = (
    ("argoproj.io", ("workflowtaskresults",), ("create", "patch"), "Argo's executor in every pod: outputs, progress"),
    _gang(JOB_SET, "jobset"),
    _gang(JOB, "job"),
    _gang(PYTORCH_JOB, "pytorchjob"),
    _gang(TF_JOB, "tfjob"),
    _gang(XGBOOST_JOB, "xgboostjob"),
    _gang(MPI_JOB, "mpijob"),
    _gang(TRAIN_JOB, "trainjob"),
    (TRAINING_RUNTIME.group, (TRAINING_RUNTIME.plural,), ("create", "list", "delete"), "what its TrainJob refers to"),
    _gang(VOLCANO_JOB, "volcano"),
    _gang(RAY_JOB, "rayjob"),
    ("scheduling.k8s.io", ("podgroups",), ("create", "list", "delete"), "the gang's placement, with placement native"),
    ("scheduling.x-k8s.io", ("podgroups",), ("create", "list", "delete"), "the same, with placement coscheduling"),
    ("scheduling.volcano.sh", ("podgroups",), ("create", "list", "delete"), "the same, with placement volcano"),
    ("", ("pods",), ("get", "list", "watch"), "how the gang's pods are"),
    ("", ("pods/log",), ("get",), "the last words of a gang that argosy supervise runs"),
    ("", ("services",), ("create", "delete"), "the names of the gang's pods and of its supervisor"),
    ("", ("secrets",), ("create",), "the token between them; no secret is ever read"),
    ("networking.k8s.io", ("networkpolicies",), ("create",), "nobody else talks to the gang"),
    ("", ("events",), ("list",), "why pods do not come"),
    ("kueue.x-k8s.io", ("workloads",), ("list",), "the gang's place in the queue, with placement kueue"),
)
"""(API group, resources, verbs, what for): all that pods of a run ask of the API."""


def manifests(namespace: str, account: str) -> list[dict[str, Any]]:
    """ServiceAccount, Role and RoleBinding, in the order in which they are applied.

    Nothing else is said of the account, so that annotations and pull secrets which others put on it stay.
    """
    own: dict[str, Any] = {"namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "argosy"}}
    binding = ROLE if account == ROLE else f"{ROLE}-{account}"
    rules = [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
        for group, resources, verbs, _ in RULES
    ]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, **own}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": ROLE, **own}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": binding, **own},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]


def namespace_manifest(name: str) -> dict[str, Any]:
    """The namespace, with the strictest of the Pod Security standards."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {ENFORCE: "restricted"}}}


def claim_manifest(namespace: str, name: str, size: str, storage_class: str) -> dict[str, Any]:
    """The volume for ``file://`` stores and datasets; every node of a gang mounts it."""
    spec: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
