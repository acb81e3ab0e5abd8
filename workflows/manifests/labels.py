"""The labels that pods have in the end: those of the template, and those that controllers add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

Labels = Mapping[str, str | None]
"""Values by key; None for a value that differs from pod to pod, or that is not known here."""

_BATCH: Final = ("batch.kubernetes.io/", "")
# What each controller sets, from its API types: batch/v1 well-known labels, apps/v1, jobset api/jobset/v1alpha2,
# training-operator pkg/apis/kubeflow.org/v1/common_types.go, volcano pkg/apis/batch/v1alpha1/labels.go, kuberay
# ray-operator/controllers/ray/utils/constant.go. A trailing * stands for all keys with that beginning.
_OF_FAMILY: Final = {
    "jobset": ("jobset.sigs.k8s.io/*",),
    "trainer": ("jobset.sigs.k8s.io/*", "trainer.kubeflow.org/*"),
    "ray": ("ray.io/*", "app.kubernetes.io/*"),
    "argo": ("workflows.argoproj.io/*",),
}
_OPERATORS: Final = ("pytorch", "tensorflow", "xgboost", "mpi")
_LEGACY: Final = ("group-name", "job-name", "job-role", "replica-type", "replica-index", "controller-name")


def labels_of(workload: Workload, role: Role) -> dict[str, str | None]:
    """The labels of a role's pods; a key with a trailing ``*`` stands for every key that begins so."""
    found: dict[str, str | None] = dict(_added(workload, role))
    for key, value in role.pod.labels.entries.items():
        found[key] = None if value.open or not value.is_scalar else value.text
    return found


def _added(workload: Workload, role: Role) -> dict[str, str | None]:
    document, name = workload.document, workload.document.metadata["name"]
    job = None if name.open or not name else name.text
    family = workload.family
    if document.is_a("Job", "batch.volcano.sh"):
        return {"volcano.sh/*": None, "volcano.sh/job-name": job, "volcano.sh/task-spec": role.name}
    if family == "job":
        own = job if document.kind == "Job" else None
        return {f"{start}job-name": own for start in _BATCH} | _of_jobs(role.job)
    if family in ("jobset", "trainer"):
        of_jobs: dict[str, str | None] = {f"{start}job-name": None for start in _BATCH}
        of_jobs |= _of_jobs(role.job) | dict.fromkeys(_OF_FAMILY[family])
        known = {"jobset.sigs.k8s.io/jobset-name": job, "jobset.sigs.k8s.io/replicatedjob-name": role.name}
        return of_jobs | (known if document.kind == "JobSet" else {})
    if family in _OPERATORS or document.group == "kubeflow.org":
        known = {"training.kubeflow.org/job-name": job, "training.kubeflow.org/replica-type": role.name.lower()}
        legacy = dict.fromkeys(
            (*_LEGACY, f"{document.kind.lower()[:-3]}-job-name", f"{document.kind.lower()[:-3]}-replica-type")
        )
        return {"training.kubeflow.org/*": None, **known, **legacy}
    if family == "other":
        return dict.fromkeys(("statefulset.kubernetes.io/*", "apps.kubernetes.io/*", "pod-template-hash"))
    return dict.fromkeys(_OF_FAMILY.get(family, ()))


def _of_jobs(job: Node) -> dict[str, str | None]:
    found: dict[str, str | None] = {f"{start}controller-uid": None for start in _BATCH}
    indexed = job["completionMode"].text != "NonIndexed"
    return found | ({"batch.kubernetes.io/job-completion-index": None} if indexed else {})


def selects(selector: Node, labels: Labels) -> bool:
    """Whether an equality selector can select a pod of these labels; what is not known counts as equal."""
    return all(_matches(key, value, labels) for key, value in selector.entries.items())


def narrows_to_one(selector: Node) -> bool:
    """Whether the selector names a single pod: by its index or its name."""
    ends = ("pod-index", "completion-index", "replica-index", "task-index", "pod-name", "worker-index", "job-index")
    return any(key.endswith(ends) for key in selector.entries)


def _matches(key: str, value: Node, labels: Labels) -> bool:
    if value.open:
        return True
    if key in labels:
        held = labels[key]
        return held is None or held == value.text
    return any(key.startswith(each[:-1]) for each in labels if each.endswith("*"))
