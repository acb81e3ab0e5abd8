"""How each kind of object describes its pods: one file per family of kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.argo import argo
from argosy.workflows.manifests.kinds.core import cron_job, job, plain_pod, replicated
from argosy.workflows.manifests.kinds.jobset import jobset, trainer_runtime, trainjob
from argosy.workflows.manifests.kinds.kubeflow import mpi_job, replica_specs
from argosy.workflows.manifests.kinds.leaderworkerset import leader_worker_set
from argosy.workflows.manifests.kinds.ray import ray_cluster, ray_job
from argosy.workflows.manifests.kinds.volcano import volcano_job
from argosy.workflows.manifests.workload import Workload

Reader = Callable[[Document], Workload]

READERS: Final[Mapping[tuple[str, str], Reader]] = {
    ("PyTorchJob", "kubeflow.org"): replica_specs,
    ("TFJob", "kubeflow.org"): replica_specs,
    ("XGBoostJob", "kubeflow.org"): replica_specs,
    ("PaddleJob", "kubeflow.org"): replica_specs,
    ("JAXJob", "kubeflow.org"): replica_specs,
    ("MXJob", "kubeflow.org"): replica_specs,
    ("MPIJob", "kubeflow.org"): mpi_job,
    ("TrainJob", "trainer.kubeflow.org"): trainjob,
    ("TrainingRuntime", "trainer.kubeflow.org"): trainer_runtime,
    ("ClusterTrainingRuntime", "trainer.kubeflow.org"): trainer_runtime,
    ("JobSet", "jobset.x-k8s.io"): jobset,
    ("JobSet", "jobset.sigs.k8s.io"): jobset,  # the prefix of its labels, often taken for the group: API020
    ("Job", "batch"): job,
    ("CronJob", "batch"): cron_job,
    ("Job", "batch.volcano.sh"): volcano_job,
    ("RayJob", "ray.io"): ray_job,
    ("RayCluster", "ray.io"): ray_cluster,
    ("RayService", "ray.io"): ray_cluster,
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io"): leader_worker_set,
    ("Pod", ""): plain_pod,
    ("Deployment", "apps"): replicated,
    ("StatefulSet", "apps"): replicated,
    ("DaemonSet", "apps"): replicated,
    ("ReplicaSet", "apps"): replicated,
    ("Workflow", "argoproj.io"): argo,
    ("WorkflowTemplate", "argoproj.io"): argo,
    ("ClusterWorkflowTemplate", "argoproj.io"): argo,
    ("CronWorkflow", "argoproj.io"): argo,
}
"""(kind, API group) -> its reader."""


def workload_of(document: Document) -> Workload | None:
    """The workload that an object makes; None for an object that makes no pods (or whose kind is not known here)."""
    reader = READERS.get((document.kind, document.group))
    return reader(document) if reader is not None else None
