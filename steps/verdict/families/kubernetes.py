"""Reasons in Kubernetes' own words, of pods, containers, events and conditions."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.pattern import Pattern, Weight

_FACT = Weight.MACHINE

REASONS: dict[str, Cause] = {
    "DisruptionTarget": Cause.PREEMPTED_EVICTED,
    "PreemptionByScheduler": Cause.PREEMPTED_EVICTED,
    "PreemptionByKueueController": Cause.PREEMPTED_EVICTED,
    "Preempted": Cause.PREEMPTED_EVICTED,
    "Preempting": Cause.PREEMPTED_EVICTED,
    "EvictionByEvictionAPI": Cause.PREEMPTED_EVICTED,
    "DeletionByTaintManager": Cause.PREEMPTED_EVICTED,
    "DeletionByPodGC": Cause.PREEMPTED_EVICTED,
    "TerminationByKubelet": Cause.PREEMPTED_EVICTED,
    "Evicted": Cause.PREEMPTED_EVICTED,
    "NodeLost": Cause.PREEMPTED_EVICTED,
    "NodeNotReady": Cause.PREEMPTED_EVICTED,
    "NodeShutdown": Cause.PREEMPTED_EVICTED,
    "Terminated": Cause.PREEMPTED_EVICTED,
    "Shutdown": Cause.PREEMPTED_EVICTED,
    "OOMKilled": Cause.HOST_OOM,
    "SystemOOM": Cause.HOST_OOM,
    "DeadlineExceeded": Cause.DEADLINE_EXCEEDED,
    "Unschedulable": Cause.UNSCHEDULABLE,
    "FailedScheduling": Cause.UNSCHEDULABLE,
    "ErrImagePull": Cause.IMAGE_PULL,
    "ImagePullBackOff": Cause.IMAGE_PULL,
    "InvalidImageName": Cause.IMAGE_PULL,
    "ErrImageNeverPull": Cause.IMAGE_PULL,
    "FailedMount": Cause.VOLUME_MOUNT,
    "FailedAttachVolume": Cause.VOLUME_MOUNT,
    "CreateContainerConfigError": Cause.CONFIG_OR_RBAC,
    "CreateContainerError": Cause.CONFIG_OR_RBAC,
    "RunContainerError": Cause.CONFIG_OR_RBAC,
    "StartError": Cause.CONFIG_OR_RBAC,
    "FailedCreate": Cause.CONFIG_OR_RBAC,
    "Forbidden": Cause.CONFIG_OR_RBAC,
}
"""Reason to cause; a message that matches a pattern below refines it."""

PATTERNS = (
    Pattern(
        Cause.DISK_FULL,
        r"(?i)low on resource: ephemeral-storage|ephemeral local storage usage exceeds"
        r"|exceeded its local ephemeral storage|Usage of EmptyDir volume .* exceeds",
        "Pod ephemeral local storage usage exceeds the total limit of containers storage 20Gi",
        _FACT,
    ),
    Pattern(
        Cause.PREEMPTED_EVICTED,
        r"(?i)imminent node shutdown|low on resource: memory|preempted (by|to admit)|NoExecute taint|node .*not ready",
        "Pod was terminated in response to imminent node shutdown.",
        _FACT,
    ),
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)toomanyrequests|pull rate limit|failed to pull.*(429|5\d\d|timeout|i/o)",
        "toomanyrequests: You have reached your pull rate limit.",
        _FACT,
        ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)manifest unknown|manifest for \S+ not found|pull access denied|repository does not exist"
        r"|failed to pull (and unpack )?image",
        'Failed to pull image "argosy/trainer:9": manifest unknown',
        _FACT,
    ),
    Pattern(
        Cause.VOLUME_MOUNT,
        r"(?i)MountVolume\.\w+ failed|Unable to attach or mount volumes|Multi-Attach error|persistentvolumeclaim"
        r" \S+ not found",
        'MountVolume.SetUp failed for volume "pvc-1": rpc error: code = Internal',
        _FACT,
    ),
    Pattern(
        Cause.CONFIG_OR_RBAC,
        r'(?i)(secret|configmap)s? "\S+" (not found|is forbidden)|is forbidden: |admission webhook .* denied',
        'Error: secret "hf-token" not found',
        _FACT,
    ),
    Pattern(
        Cause.UNSCHEDULABLE,
        r"(?i)\d+/\d+ nodes are available|exceeded quota|Insufficient (nvidia\.com|cpu|memory)",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        _FACT,
    ),
    Pattern(
        Cause.DEADLINE_EXCEEDED,
        r"(?i)was active on the node longer than the specified deadline|longer than specified deadline",
        "Pod was active on the node longer than the specified deadline",
        _FACT,
    ),
)
