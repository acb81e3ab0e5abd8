"""Names of what a run makes in a cluster, known at author time and in pods."""

from __future__ import annotations

RUN_LABEL = "argosy.dev/run"
"""On every Workflow of a run and on its gang: ``TrainingRun.name``."""
ROLE_LABEL = "argosy.dev/role"
"""``supervisor`` on the train step's pod: the channel's Service selects it."""
GANG_LABEL = "argosy.dev/gang"
"""On the pods of a gang, and on what stands beside them: its name."""
SPARES_ANNOTATION = "argosy.dev/spares"
"""On a gang's workload: so many of its pods stand by for a rank that is lost."""
UID_LABEL = "argosy.dev/workflow-uid"
"""On everything that was made for a workflow."""
WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
"""Argo's own: pods that have it and a container called main are shown by ``argo logs``."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-{}-topology"
"""Annotation of a pod: ``required`` or ``preferred`` in the gap."""
KAI_QUEUE = "kai.scheduler/queue"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
"""Label of a pod by which scheduler-plugins knows its PodGroup."""
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""Annotation of a pod by which Volcano knows its PodGroup."""
TOKEN_KEY = "token"
METRICS_PORT = 9464
"""Of the supervisor's pod, where Prometheus finds the run's figures (OpenTelemetry's default for it)."""
METRICS_PORT_NAME = "metrics"


def trigger_name(run: str) -> str:
    """Name of everything that belongs to the trigger of the run of that name."""
    return f"{run}-trigger"


def channel_name(workflow_uid: str) -> str:
    """Name of the control channel's Service and Secret."""
    return f"argosy-channel-{workflow_uid}"
