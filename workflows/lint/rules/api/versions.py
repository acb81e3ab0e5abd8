"""Versions and kinds that are gone or going, with what came after them; fields that moved with a version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from argosy.workflows.lint.finding import Level, Problem, SetValue
from argosy.workflows.lint.rule import declare, rule
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node


class Gone(NamedTuple):
    """What became of a version of a kind.

    Args:
        level: error where no maintained release serves it any more.
        what: the end of the sentence "PodSecurityPolicy of policy/v1beta1 …".
        successor: what to write instead.
        same: the apiVersion that takes the same fields, for ``--fix``; ``""`` when a person must look.
        drafted: no release ever served it, so what the file says is a sketch of another version.
    """

    level: Level
    what: str
    successor: str
    same: str = ""
    drafted: bool = False


never: Final = partial(Gone, Level.ERROR, "does not exist", drafted=True)
gone: Final = partial(Gone, Level.ERROR)
_V1: Final = "is deprecated with the Training Operator v1, which gets dependency updates only"
_TRAINER: Final = "write trainer.kubeflow.org/v1alpha1"
_OF_TRAINER: Final = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")
_OLD_TRAINING: Final = "was replaced by kubeflow.org/v1 and is served by no current Training Operator"

KINDS: Final[dict[tuple[str, str], Gone]] = {
    ("scheduling.run.ai/v2", "PodGroup"): gone(
        "does not exist: v2 has KAI's queues only", "write scheduling.run.ai/v2alpha2"
    ),
    **{
        (f"kubeflow.org/{version}", "MXJob"): gone(
            "is gone: the Training Operator dropped it after MXNet was retired", "use a TrainJob or a JobSet"
        )
        for version in ("v1", "v1beta1", "v1alpha1")
    },
    ("kubeflow.org/v1", "PyTorchJob"): Gone(
        Level.NOTE, _V1, "a TrainJob (trainer.kubeflow.org/v1alpha1) or a JobSet is its successor"
    ),
    ("kubeflow.org/v1", "TFJob"): Gone(
        Level.NOTE, _V1 + "; Trainer v2 has no kind for TensorFlow", "a JobSet with TF_CONFIG set from the pod's index"
    ),
    ("kubeflow.org/v1", "XGBoostJob"): Gone(
        Level.NOTE, _V1, "a TrainJob with a runtime whose mlPolicy is xgboost is its successor"
    ),
    ("kubeflow.org/v1", "PaddleJob"): Gone(Level.NOTE, _V1, "a TrainJob with a plain runtime is its successor"),
    ("kubeflow.org/v1", "JAXJob"): Gone(
        Level.NOTE, _V1, "a TrainJob with a runtime whose mlPolicy is jax is its successor"
    ),
    ("kubeflow.org/v1", "MPIJob"): Gone(
        Level.WARNING,
        "is the Training Operator's MPIJob, which is deprecated; it shares its CRD's name with the MPI Operator's, so "
        "that only one of them can be installed",
        "write kubeflow.org/v2beta1 for the MPI Operator (runPolicy holds cleanPodPolicy there)",
    ),
    **{
        (f"kubeflow.org/{version}", kind): never(_TRAINER, same="trainer.kubeflow.org/v1alpha1")
        for version in ("v1", "v2", "v2alpha1", "v2alpha2", "v2beta1")
        for kind in _OF_TRAINER
    },
    ("kubeflow.org/v1alpha1", "MPIJob"): gone(
        "is served by no current MPI Operator",
        "write kubeflow.org/v2beta1 with a new spec: mpiReplicaSpecs with a Launcher that runs mpirun and Workers",
    ),
    ("kubeflow.org/v1alpha2", "MPIJob"): gone("is served by no current MPI Operator", "write kubeflow.org/v2beta1"),
    ("batch/v1beta1", "CronJob"): gone("is not served since Kubernetes 1.25", "write batch/v1", same="batch/v1"),
    ("policy/v1beta1", "PodDisruptionBudget"): gone(
        "is not served since Kubernetes 1.25", "write policy/v1", same="policy/v1"
    ),
    ("policy/v1beta1", "PodSecurityPolicy"): gone(
        "is not served since Kubernetes 1.25",
        "label the namespace for Pod Security admission: pod-security.kubernetes.io/enforce",
    ),
    ("networking.k8s.io/v1beta1", "Ingress"): gone(
        "is not served since Kubernetes 1.22", "write networking.k8s.io/v1, whose backends are nested"
    ),
    ("v1", "PodSecurityPolicy"): gone("never was a kind of v1 and is gone since 1.25", "remove it"),
}
"""(apiVersion, kind) -> what became of it."""

VERSIONS: Final[dict[str, Gone]] = {
    "kubeflow.org/v1alpha1": gone(_OLD_TRAINING, "write a TrainJob, or kubeflow.org/v1 with replicas by their type"),
    "kubeflow.org/v1alpha2": gone(_OLD_TRAINING, "write kubeflow.org/v1, or a TrainJob"),
    "kubeflow.org/v1beta1": gone(_OLD_TRAINING, "write kubeflow.org/v1, or a TrainJob"),
    "kubeflow.org/v1beta2": gone(_OLD_TRAINING, "write kubeflow.org/v1, or a TrainJob"),
    "kubeflow.org/v2alpha1": gone("was replaced before its first release", "write kubeflow.org/v2beta1"),
    "kubeflow.org/v2": never("write kubeflow.org/v2beta1 (MPIJob) or trainer.kubeflow.org"),
    "trainer.kubeflow.org/v1": gone(
        "does not exist yet", "write trainer.kubeflow.org/v1alpha1", same="trainer.kubeflow.org/v1alpha1"
    ),
    "trainer.kubeflow.org/v2alpha1": never(_TRAINER, same="trainer.kubeflow.org/v1alpha1"),
    "kubeflow.org/v2alpha2": never("write trainer.kubeflow.org/v1alpha1"),
    "extensions/v1beta1": gone(
        "is not served since Kubernetes 1.22",
        "write networking.k8s.io/v1 for an Ingress or a NetworkPolicy, apps/v1 for a Deployment or a DaemonSet",
    ),
    "apps/v1beta1": gone("is not served since Kubernetes 1.16", "write apps/v1 and give it a selector"),
    "apps/v1beta2": gone("is not served since Kubernetes 1.16", "write apps/v1 and give it a selector"),
    "batch/v2alpha1": gone("is not served since Kubernetes 1.21", "write batch/v1"),
    "rbac.authorization.k8s.io/v1beta1": gone(
        "is not served since Kubernetes 1.22", "write rbac.authorization.k8s.io/v1", same="rbac.authorization.k8s.io/v1"
    ),
    "rbac.authorization.k8s.io/v1alpha1": gone(
        "is not served since Kubernetes 1.20", "write rbac.authorization.k8s.io/v1"
    ),
    "autoscaling/v2beta1": gone("is not served since Kubernetes 1.25", "write autoscaling/v2"),
    "autoscaling/v2beta2": gone("is not served since Kubernetes 1.26", "write autoscaling/v2"),
    "storage.k8s.io/v1beta1": Gone(
        Level.WARNING, "is gone for StorageClass and most kinds since 1.22", "write storage.k8s.io/v1"
    ),
    "scheduling.k8s.io/v1alpha1": Gone(
        Level.WARNING,
        "is gone: Workload had another form in 1.35, PriorityClass left it in 1.17",
        "write scheduling.k8s.io/v1beta1 for Workload and PodGroup (Kubernetes 1.37), scheduling.k8s.io/v1 for classes",
    ),
    "scheduling.k8s.io/v1alpha2": Gone(
        Level.WARNING,
        "was served by Kubernetes 1.36 only, as alpha",
        "write scheduling.k8s.io/v1beta1 (Kubernetes 1.37; the gate GenericWorkload must be on)",
    ),
    "scheduling.incubator.k8s.io/v1alpha1": gone(
        "was kube-batch's, which is retired", "write scheduling.volcano.sh/v1beta1 and use Volcano"
    ),
    "scheduling.volcano.sh/v1alpha1": gone("is served by no current Volcano", "write scheduling.volcano.sh/v1beta1"),
    "scheduling.volcano.sh/v1alpha2": gone("is served by no current Volcano", "write scheduling.volcano.sh/v1beta1"),
    "batch.volcano.sh/v1": never("write batch.volcano.sh/v1alpha1"),
    "scheduling.sigs.k8s.io/v1alpha1": Gone(
        Level.WARNING,
        "was renamed by scheduler-plugins, and lives on in Koordinator only",
        "write scheduling.x-k8s.io/v1alpha1, unless Koordinator schedules the pods",
    ),
    "pod-group.scheduling.sigs.k8s.io/v1alpha1": gone(
        "never was an API group: it is the prefix of old labels", "write scheduling.x-k8s.io/v1alpha1"
    ),
    "kueue.x-k8s.io/v1alpha1": Gone(Level.WARNING, "is served by no current Kueue", "write kueue.x-k8s.io/v1beta2"),
    "kueue.x-k8s.io/v1alpha2": gone("is served by no current Kueue", "write kueue.x-k8s.io/v1beta2"),
    "kueue.x-k8s.io/v1beta1": Gone(
        Level.WARNING, "is not served since Kueue 0.20", "write kueue.x-k8s.io/v1beta2 (served since 0.15)"
    ),
    "kueue.x-k8s.io/v1": gone("does not exist yet", "write kueue.x-k8s.io/v1beta2"),
    "jobset.x-k8s.io/v1alpha1": gone("is served by no current JobSet", "write jobset.x-k8s.io/v1alpha2"),
    "jobset.x-k8s.io/v1": gone("does not exist yet", "write jobset.x-k8s.io/v1alpha2"),
    "jobset.x-k8s.io/v1beta1": gone("does not exist yet", "write jobset.x-k8s.io/v1alpha2"),
    "ray.io/v1alpha1": Gone(
        Level.WARNING,
        "gets no fields since KubeRay 1.0, is deprecated since 1.7 and no longer served from 1.9 on",
        "write ray.io/v1, which takes all of its fields",
        same="ray.io/v1",
    ),
    "resource.k8s.io/v1alpha1": gone("is not served since Kubernetes 1.27", "write resource.k8s.io/v1"),
    "resource.k8s.io/v1alpha2": gone("is not served since Kubernetes 1.31", "write resource.k8s.io/v1"),
    "resource.k8s.io/v1alpha3": Gone(
        Level.WARNING, "is served for DeviceTaintRule only since Kubernetes 1.33", "write resource.k8s.io/v1"
    ),
    "argoproj.io/v1": never("write argoproj.io/v1alpha1", same="argoproj.io/v1alpha1"),
    "monitoring.coreos.com/v1beta1": never("write monitoring.coreos.com/v1"),
}
"""apiVersion -> what became of it, for the kinds that :data:`KINDS` does not name."""

_TORCH: Final = "TrainerTorchMLPolicySource"
_LOCKS: Final = "ArgoprojV1alpha1WorkflowSpecSynchronization"
_RUN_POLICY: Final = "the operators before Training Operator 1.3 took it there; now runPolicy does"
MOVED: Final[dict[tuple[str, str], str]] = {
    ("TrainerTrainJobSpec", "podTemplateOverrides"): "Trainer 2.2 replaced it by runtimePatches",
    ("TrainerTrainJobSpec", "podSpecOverrides"): "Trainer 2.1 renamed it, and 2.2 replaced it by runtimePatches",
    ("TrainerTrainJobSpec", "modelConfig"): "Trainer 2.0 replaced it by initializer",
    ("TrainerTrainJobSpec", "datasetConfig"): "Trainer 2.0 replaced it by initializer",
    (_TORCH, "numProcPerNode"): "Trainer 2.2 removed it: write trainer.numProcPerNode in the TrainJob",
    (_TORCH, "elasticPolicy"): "Trainer 2.2 removed it; elastic TrainJobs do not exist yet",
    ("TrainerMLPolicy", "elasticPolicy"): "Trainer v2 has no elastic policy",
    ("TrainerTrainJobSpec", "elasticPolicy"): "Trainer v2 has no elastic policy",
    ("ArgoprojV1alpha1CronWorkflowSpec", "schedule"): "Argo Workflows 4.0 removed it: write schedules, a list",
    (_LOCKS, "mutex"): "Argo Workflows 4.0 removed it: write mutexes, a list",
    (_LOCKS, "semaphore"): "Argo Workflows 4.0 removed it: write semaphores, a list",
    **{
        (f"KubeflowOrg{kind}Spec", field): _RUN_POLICY
        for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "MPIJob")
        for field in ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
    },
    ("KubeflowV2beta1MPIJobSpec", "cleanPodPolicy"): "MPI Operator 0.4 moved it into runPolicy",
    ("PodResourceClaim", "source"): "Kubernetes 1.31 took it away: write its fields one level higher",
}
"""(type, field) -> what became of a field that an older version had: who runs that version may keep it."""

OLD_WORDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("TrainerTrainer", "numProcPerNode"): ("auto", "cpu", "gpu")  # whole numbers only since Trainer 2.2
}
"""(type, field) -> words that an older version took."""


# Other projects' kinds share these groups, and live on at those versions (Katib's Experiment, Kubeflow's Profile, …).
_ONLY: Final = {
    "kubeflow.org": ("PyTorchJob", "TFJob", "XGBoostJob", "MXJob", "MPIJob", "PaddleJob", "JAXJob", *_OF_TRAINER),
    "scheduling.incubator.k8s.io": ("PodGroup", "Queue"),
    "storage.k8s.io": ("StorageClass", "VolumeAttachment", "CSIDriver", "CSINode"),
    "monitoring.coreos.com": ("ServiceMonitor", "PodMonitor", "PrometheusRule", "Prometheus", "Alertmanager"),
    "resource.k8s.io": ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"),
}


@rule("API001", Level.ERROR, on=Document)
def version(document: Document) -> Iterator[Problem]:
    """A version or a kind that is gone, or going."""
    found = KINDS.get((document.api_version, document.kind)) or VERSIONS.get(document.api_version)
    node = document.root["apiVersion"]
    if found is None or document.kind not in _ONLY.get(document.group, (document.kind,)):
        return
    edits = [SetValue(node, found.same)] if found.same else []
    message = f"{document.kind} of {document.api_version} {found.what}"
    of_all_kinds = f"{document.api_version} {found.what}"  # one release of one project made all of its kinds go
    yield Problem(node, message, found.successor, edits, found.level, cause=of_all_kinds, drafted=found.drafted)


declare("API006", Level.WARNING)


@rule("API007", Level.NOTE, on=Document)
def deprecated_fields(document: Document) -> Iterator[Problem]:
    """A field that still works and is deprecated."""
    startup = document.spec["startupPolicy"] or document.spec.at("template.spec.startupPolicy")
    if document.kind in ("JobSet", "TrainingRuntime", "ClusterTrainingRuntime") and startup:
        message = "startupPolicy is deprecated since JobSet 0.8"
        yield Problem(startup, message, "write dependsOn in the replicated jobs that wait for another")
    for node, successor in _old_fields(document.root):
        yield Problem(node, f"{node.key} is deprecated", f"write {successor}")


def _old_fields(root: Node) -> Iterator[tuple[Node, str]]:
    for path in ("spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"):
        account = root.at(path)["serviceAccount"]
        if account and root["kind"].text in ("Pod", "Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet"):
            yield account, "serviceAccountName"
