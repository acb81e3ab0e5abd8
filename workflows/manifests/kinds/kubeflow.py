"""``kubeflow.org``: the Training Operator's kinds, and the MPI Operator's."""

from __future__ import annotations

from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.core import number
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_FIELDS: Final = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost"),
    "PaddleJob": ("paddleReplicaSpecs", "other"),
    "JAXJob": ("jaxReplicaSpecs", "other"),
    "MXJob": ("mxReplicaSpecs", "other"),
}


def replica_specs(document: Document) -> Workload:
    """``spec.xReplicaSpecs``: a template per replica type; the operator's ``restartPolicy`` overrides the pod's."""
    field, family = _FIELDS[document.kind]
    return Workload(document, family, _roles(document, field), document.spec)


def mpi_job(document: Document) -> Workload:
    """``MPIJob``: workers that run sshd, and a launcher that runs ``mpirun``."""
    roles = _roles(document, "mpiReplicaSpecs")
    for role in roles:
        role.launcher = role.name == "Launcher" and document.spec["runLauncherAsWorker"].flag is not True
    return Workload(document, "mpi", roles, document.spec)


def _roles(document: Document, field: str) -> list[Role]:
    found = []
    for name, node in document.spec[field].entries.items():
        template = node["template"]
        policy = node["restartPolicy"] or template.at("spec.restartPolicy")
        replicas = number(node["replicas"], 1)
        found.append(Role(name, node, replicas, node["replicas"], template, policy, document))
    return found
