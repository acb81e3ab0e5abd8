"""Where each kind of object lives in the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """``plural`` below ``api_version``; ``namespaced`` or one for the whole cluster."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; "" for the core's."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str, name: str = "") -> str:
        """Path of the collection, or of the object ``name`` in it."""
        root = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        inside = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{inside}/{self.plural}" + (f"/{name}" if name else "")


POD = Kind("v1", "Pod", "pods")
SERVICE = Kind("v1", "Service", "services")
SECRET = Kind("v1", "Secret", "secrets")
EVENT = Kind("v1", "Event", "events")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
JOB = Kind("batch/v1", "Job", "jobs")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
POD_GROUP = Kind("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups")
COSCHEDULING_GROUP = Kind("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups")
VOLCANO_POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")
VOLCANO_QUEUE = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)
POD_GROUPS = (POD_GROUP, COSCHEDULING_GROUP, VOLCANO_POD_GROUP)
"""Whoever places a gang whole has one of its own."""
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
JOB_SET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
PYTORCH_JOB = Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs")
TF_JOB = Kind("kubeflow.org/v1", "TFJob", "tfjobs")
XGBOOST_JOB = Kind("kubeflow.org/v1", "XGBoostJob", "xgboostjobs")
MPI_JOB = Kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
TRAIN_JOB = Kind("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
TRAINING_RUNTIME = Kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "trainingruntimes")
NOT_SEEN_YET = re.compile("must be created before the TrainJob|runtime '[^']*' not found")
"""Trainer's webhook and Kueue's, of a TrainJob whose TrainingRuntime is not there, or not yet in the cache they
look into."""
RAY_JOB = Kind("ray.io/v1", "RayJob", "rayjobs")
VOLCANO_JOB = Kind("batch.volcano.sh/v1alpha1", "Job", "jobs")
WORKFLOW = Kind("argoproj.io/v1alpha1", "Workflow", "workflows")
WORKFLOW_TEMPLATE = Kind("argoproj.io/v1alpha1", "WorkflowTemplate", "workflowtemplates")
CRON_WORKFLOW = Kind("argoproj.io/v1alpha1", "CronWorkflow", "cronworkflows")
EVENT_BINDING = Kind("argoproj.io/v1alpha1", "WorkflowEventBinding", "workfloweventbindings")
EVENT_BUS = Kind("argoproj.io/v1alpha1", "EventBus", "eventbus")
EVENT_SOURCE = Kind("argoproj.io/v1alpha1", "EventSource", "eventsources")
SENSOR = Kind("argoproj.io/v1alpha1", "Sensor", "sensors")
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
RESOURCE_QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
CLUSTER_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
TOPOLOGY = Kind("kueue.x-k8s.io/v1beta2", "Topology", "topologies", namespaced=False)
RESOURCE_FLAVOR = Kind("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)
KAI_QUEUE = Kind("scheduling.run.ai/v2", "Queue", "queues", namespaced=False)
WORKLOAD_PRIORITY_CLASS = Kind(
    "kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
SUBJECT_REVIEW = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)

_KNOWN = {
    (kind.api_version, kind.kind): kind
    for kind in (
        POD, SERVICE, SECRET, EVENT, NODE, NAMESPACE, SERVICE_ACCOUNT, CLAIM, JOB, NETWORK_POLICY, ROLE, ROLE_BINDING,
        STORAGE_CLASS, PRIORITY_CLASS, *POD_GROUPS, JOB_SET, PYTORCH_JOB, MPI_JOB, TRAIN_JOB, VOLCANO_JOB,
        TRAINING_RUNTIME, WORKFLOW, WORKFLOW_TEMPLATE, LOCAL_QUEUE, ACCESS_REVIEW, SUBJECT_REVIEW, CRON_WORKFLOW,
        EVENT_BINDING, EVENT_BUS, EVENT_SOURCE, SENSOR, TF_JOB, XGBOOST_JOB, RAY_JOB,
    )
}  # fmt: skip


def kind_of(document: Mapping[str, Any]) -> Kind:
    """The kind of a manifest.

    Raises:
        KeyError: a kind that nobody here speaks to.
    """
    return _KNOWN[(str(document.get("apiVersion")), str(document.get("kind")))]
