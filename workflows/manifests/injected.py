"""Variables that a controller adds to the containers it makes."""

from __future__ import annotations

import re
from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container

_TORCH: Final = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
# kind -> names or prefixes (with a trailing *), from the operators' sources: training-operator
# pkg/controller.v1/*/envvar.go, mpi-operator pkg/controller/mpi_job_controller.go, volcano pkg/controllers/job/plugins,
# kuberay ray-operator/controllers/ray/common, argo-workflows workflow/controller/workflowpod.go.
_OF_KIND: Final = {
    "PyTorchJob": (*_TORCH, "PET_*", "PYTHONUNBUFFERED"),
    "TFJob": ("TF_CONFIG",),
    "XGBoostJob": (*_TORCH, "WORKER_*", "PYTHONUNBUFFERED"),
    "PaddleJob": ("PADDLE_*", "TRAINER_*", "TRAINING_ROLE", "POD_IP", "PORT"),
    "JAXJob": ("COORDINATOR_*", "NUM_PROCESSES", "PROCESS_ID", "PYTHONUNBUFFERED"),
    "MXJob": ("MX_CONFIG", "DMLC_*"),
    "MPIJob": ("OMPI_*", "I_MPI_*", "HYDRA_*", "K_MPI_*", "NVIDIA_*"),
    "RayJob": ("RAY_*", "FQ_RAY_IP", "REDIS_PASSWORD"),
    "RayCluster": ("RAY_*", "FQ_RAY_IP", "REDIS_PASSWORD"),
    "RayService": ("RAY_*", "FQ_RAY_IP", "REDIS_PASSWORD"),
    "Workflow": ("ARGO_*",),
    "WorkflowTemplate": ("ARGO_*",),
    "ClusterWorkflowTemplate": ("ARGO_*",),
    "CronWorkflow": ("ARGO_*",),
}
# The kubelet adds every Service's address; webhooks of clouds and of LeaderWorkerSet add theirs.
_ANYWHERE: Final = re.compile(
    r"[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT\w*|PORT(_\w+)?)|(AWS|TPU|KUBE_GOOGLE|LWS|AZURE|GOOGLE)_\w+"
)
# volcano pkg/controllers/job/plugins/env and svc: VC_MASTER_HOSTS of the task master, and no VC_MASTER_HOST.
_OF_VOLCANO: Final = re.compile(r"V[CK]_TASK_INDEX|VC_\w+_(HOSTS|NUM)")
_RUNTIMES: Final = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")


def injected(name: str, container: Container) -> bool:
    """Whether a controller may add the variable to the container (so that nobody need write it down)."""
    document, role = container.pod.document, container.pod.role
    job = role.job if role is not None else Node(None, container.node.origin)
    if document.kind in _RUNTIMES or _ANYWHERE.fullmatch(name):
        return True
    if name == "JOB_COMPLETION_INDEX":
        return job["completionMode"].text == "Indexed" or document.kind == "JobSet"
    if document.is_a("Job", "batch.volcano.sh"):
        plugins = document.spec["plugins"]
        if name.endswith("_TASK_INDEX") and plugins and not plugins.open:
            return "env" in plugins
        of_torch = name in _TORCH and "pytorch" in plugins
        return of_torch or bool(_OF_VOLCANO.fullmatch(name)) or ("tensorflow" in plugins and name == "TF_CONFIG")
    if document.kind == "PyTorchJob" and name in _TORCH and not has_master(document):
        return False
    return any(_matches(name, each) for each in _OF_KIND.get(document.kind, ()))


def has_master(document: Document) -> bool:
    """Whether a PyTorchJob has a Master: without one the operator sets none of MASTER_ADDR, RANK and WORLD_SIZE.

    https://github.com/kubeflow/trainer/blob/v1.9.0/pkg/controller.v1/pytorch/envvar.go
    """
    return bool(document.spec.at("pytorchReplicaSpecs.Master")) or document.spec["pytorchReplicaSpecs"].open


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
