"""What the status of a run says of its end, kind by kind: the fields that an Argo condition can read.

https://github.com/argoproj/argo-workflows/blob/main/docs/walk-through/kubernetes-resources.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.workflows.manifests.document import Document


@dataclass(frozen=True)
class Outcome:
    """The status of a kind.

    Args:
        fields: first words below ``status``.
        values: what a field can say, for fields with a closed list.
        success: a condition that tells success; ``""`` where none can.
        failure: the same for failure.
    """

    fields: frozenset[str]
    values: dict[str, tuple[str, ...]]
    success: str
    failure: str


_REPLICAS: Final = frozenset(
    {"conditions", "replicaStatuses", "startTime", "completionTime", "lastReconcileTime", "launcherStatus"}
)


def _replicas(role: str) -> Outcome:
    return Outcome(
        _REPLICAS, {}, f"status.replicaStatuses.{role}.succeeded == N", f"status.replicaStatuses.{role}.failed > 0"
    )


OUTCOMES: Final = {
    ("JobSet", "jobset.x-k8s.io"): Outcome(
        frozenset(
            {"terminalState", "conditions", "restarts", "restartsCountTowardsMax", "replicatedJobsStatus"}
            | {"individualJobRestarts", "individualJobsStatus"}
        ),
        {"terminalState": ("Completed", "Failed")},
        "status.terminalState == Completed",
        "status.terminalState == Failed",
    ),
    ("Job", "batch"): Outcome(
        frozenset(
            {"active", "succeeded", "failed", "ready", "terminating", "completionTime", "startTime", "conditions"}
            | {"completedIndexes", "failedIndexes", "uncountedTerminatedPods"}
        ),
        {},
        "status.completionTime",
        "status.failed > 0",
    ),
    ("Job", "batch.volcano.sh"): Outcome(
        frozenset(
            {"state", "minAvailable", "pending", "running", "succeeded", "failed", "terminating", "unknown", "version"}
            | {"retryCount", "runningDuration", "taskStatusCount", "controlledResources", "conditions"}
        ),
        {
            "state.phase": (
                *("Pending", "Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed"),
                *("Terminating", "Terminated", "Failed"),
            )
        },
        "status.state.phase == Completed",
        "status.state.phase in (Failed,Aborted,Terminated)",
    ),
    ("RayJob", "ray.io"): Outcome(
        frozenset(
            {"jobId", "rayClusterName", "dashboardURL", "jobStatus", "jobDeploymentStatus", "reason", "message"}
            | {"startTime", "endTime", "succeeded", "failed", "rayClusterStatus", "observedGeneration", "rayJobInfo"}
        ),
        {"jobStatus": ("PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED")},
        "status.jobStatus == SUCCEEDED",
        "status.jobDeploymentStatus in (Failed,ValidationFailed)",
    ),
    ("TrainJob", "trainer.kubeflow.org"): Outcome(frozenset({"conditions", "jobsStatus", "trainerStatus"}), {}, "", ""),
    ("PyTorchJob", "kubeflow.org"): _replicas("Worker"),
    ("TFJob", "kubeflow.org"): _replicas("Worker"),
    ("XGBoostJob", "kubeflow.org"): _replicas("Worker"),
    ("MPIJob", "kubeflow.org"): _replicas("Launcher"),
}


def outcome(document: Document) -> Outcome | None:
    """What the status of this object says; None for a kind that does not run to an end."""
    return OUTCOMES.get((document.kind, document.group))
