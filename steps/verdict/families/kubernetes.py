"""Reasons and messages in Kubernetes' own words: of pods, containers, events and conditions, in any output format."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_FACT = Weight.MACHINE

REASONS: dict[str, Cause] = {
    "DisruptionTarget": Cause.PREEMPTED_EVICTED,
    "PreemptionByScheduler": Cause.PREEMPTED_EVICTED,
    "PreemptionByKubeScheduler": Cause.PREEMPTED_EVICTED,
    "PreemptionByKueueController": Cause.PREEMPTED_EVICTED,
    "Preempted": Cause.PREEMPTED_EVICTED,
    "Preempting": Cause.PREEMPTED_EVICTED,
    "EvictionByEvictionAPI": Cause.PREEMPTED_EVICTED,
    "DeletionByTaintManager": Cause.PREEMPTED_EVICTED,
    "TaintManagerEviction": Cause.PREEMPTED_EVICTED,
    "DeletionByPodGC": Cause.PREEMPTED_EVICTED,
    "TerminationByKubelet": Cause.PREEMPTED_EVICTED,
    "Evicted": Cause.PREEMPTED_EVICTED,
    "Deleted": Cause.PREEMPTED_EVICTED,
    "ContainerStatusUnknown": Cause.PREEMPTED_EVICTED,
    "NodeLost": Cause.PREEMPTED_EVICTED,
    "NodeNotReady": Cause.PREEMPTED_EVICTED,
    "NodeShutdown": Cause.PREEMPTED_EVICTED,
    "Terminated": Cause.PREEMPTED_EVICTED,
    "Shutdown": Cause.PREEMPTED_EVICTED,
    "Rebooted": Cause.PREEMPTED_EVICTED,
    "EvictedByVPA": Cause.PREEMPTED_EVICTED,
    "OOMKilled": Cause.HOST_OOM,
    "OOM Killed": Cause.HOST_OOM,
    "OOMKilling": Cause.HOST_OOM,
    "SystemOOM": Cause.HOST_OOM,
    "DeadlineExceeded": Cause.DEADLINE_EXCEEDED,
    "Unschedulable": Cause.UNSCHEDULABLE,
    "FailedScheduling": Cause.UNSCHEDULABLE,
    "UnexpectedAdmissionError": Cause.UNSCHEDULABLE,
    "TopologyAffinityError": Cause.UNSCHEDULABLE,
    "OutOfcpu": Cause.UNSCHEDULABLE,
    "OutOfmemory": Cause.UNSCHEDULABLE,
    "OutOfpods": Cause.UNSCHEDULABLE,
    "OutOfephemeral-storage": Cause.UNSCHEDULABLE,
    "NodeAffinity": Cause.UNSCHEDULABLE,
    "NotTriggerScaleUp": Cause.UNSCHEDULABLE,
    "FailedScaleUp": Cause.UNSCHEDULABLE,
    "PodsReadyTimeout": Cause.UNSCHEDULABLE,
    "ErrImagePull": Cause.IMAGE_PULL,
    "ImagePullBackOff": Cause.IMAGE_PULL,
    "InvalidImageName": Cause.IMAGE_PULL,
    "ErrImageNeverPull": Cause.IMAGE_PULL,
    "RegistryUnavailable": Cause.IMAGE_PULL,
    "InspectFailed": Cause.IMAGE_PULL,
    "FailedMount": Cause.VOLUME_MOUNT,
    "FailedAttachVolume": Cause.VOLUME_MOUNT,
    "FailedMapVolume": Cause.VOLUME_MOUNT,
    "FailedBinding": Cause.VOLUME_MOUNT,
    "VolumeResizeFailed": Cause.VOLUME_MOUNT,
    "FileSystemResizeFailed": Cause.VOLUME_MOUNT,
    "ProvisioningFailed": Cause.VOLUME_MOUNT,
    "CreateContainerConfigError": Cause.CONFIG_OR_RBAC,
    "CreateContainerError": Cause.CONFIG_OR_RBAC,
    "RunContainerError": Cause.CONFIG_OR_RBAC,
    "ContainerCannotRun": Cause.CONFIG_OR_RBAC,
    "StartError": Cause.CONFIG_OR_RBAC,
    "FailedPostStartHook": Cause.CONFIG_OR_RBAC,
    "FailedValidation": Cause.CONFIG_OR_RBAC,
    "FailedCreate": Cause.CONFIG_OR_RBAC,
    "FailedCreatePod": Cause.CONFIG_OR_RBAC,
    "Forbidden": Cause.CONFIG_OR_RBAC,
}
"""Reason to cause; a message that matches a pattern below refines it."""

_PLAIN_WORDS = (
    "Terminated",
    "Shutdown",
    "Forbidden",
    "Preempted",
    "Preempting",
    "Unschedulable",
    "DeadlineExceeded",
    "Rebooted",
    "NodeAffinity",
)
"""Reasons that are words of other programs too: believed in a field or column of Kubernetes' only."""


def _named(cause: Cause) -> tuple[str, str]:
    """Two alternations of the cause's reasons: all of them, and those that only Kubernetes says."""
    names = [name for name, named in REASONS.items() if named == cause]
    return "|".join(names), "|".join(name for name in names if name not in _PLAIN_WORDS)


def _reasons(cause: Cause, example: str) -> Pattern:
    """The reasons of a cause: as a field, a Warning event, the STATUS of `kubectl get pods`, a word of its own."""
    every, own = _named(cause)
    field = rf"\b[Rr]eason\"?[:=]\s*\"?({every})\b"
    row = rf"\bWarning\s+({every})\s|^\S+\s+\d+/\d+\s+(Init:)?({every})\b"
    weight = Weight.ROOT if cause in _REFINED else _FACT
    word = rf"|\b({own})\b" if own else ""
    return Pattern(cause, rf"{field}|{row}{word}", example, weight)


_REFINED = (Cause.PREEMPTED_EVICTED, Cause.VOLUME_MOUNT, Cause.CONFIG_OR_RBAC, Cause.UNSCHEDULABLE)
"""The message beside these reasons may name something narrower: a full disk, a missing Secret, a quota."""

PATTERNS = (
    Pattern(
        Cause.DISK_FULL,
        r"(?i)low on resource: ephemeral-storage|ephemeral local storage usage exceeds|\[?DiskPressure\]"
        r"|exceeded its local ephemeral storage|Usage of EmptyDir volume .* exceeds|reason: DiskPressure",
        "Pod ephemeral local storage usage exceeds the total limit of containers storage 20Gi",
        _FACT,
    ),
    Pattern(
        Cause.PREEMPTED_EVICTED,
        r"(?i)node (is shutting down|shutdown)|low on resource: memory|\bpreempt(ed|ing)? (by|to a(dmit|ccommodate))"
        r"|\bbeing preempted|NoExecute taint"
        r"|node .*\bnot ready\b|^\S+\s+NotReady\b|node (\S+ )?(is|was|became) (lost|unreachable)"
        r"|\bspot (instance )?(interruption|termination|reclaim)|job (is|was|has been) preempted|DUE TO PREEMPTION"
        r"|DUE TO NODE FAILURE|srun: error: Node failure on|node .*\bmarked (as )?dead\b|node \S+ is unresponsive as of"
        r"|marking for deletion pod|instance .*(reclaimed|will be terminated)|maintenance event",
        "Pod was terminated in response to imminent node shutdown.",
        _FACT,
    ),
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)(?-i:toomanyrequests)|pull rate limit|(failed to pull|pull\w* ?image|(docker|quay|ghcr|nvcr"
        r"|gcr)\.io/).*(\b429\b|\b50\d\b|timeout|i/o"
        r"|dial tcp|\bEOF\b|handshake|connection re|request canceled|no such host|deadline|could not reach"
        r"|unreachable)|RegistryUnavailable",
        "toomanyrequests: You have reached your pull rate limit.",
        _FACT,
        ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)manifest unknown|manifest for \S+ not found|\bimage \S+:\S+ not found|pull access denied"
        r"|repository does not exist"
        r"|failed to (pull|resolve|unpack) .*image|failed to import docker image|failed to resolve reference"
        r"|(fail\w*|trying|back-off) (to )?pull(ing)? (image|repository)|couldn't parse image",
        'Failed to pull image "argosy/trainer:9": manifest unknown',
        _FACT,
    ),
    _reasons(Cause.IMAGE_PULL, "      Reason:       ImagePullBackOff"),
    Pattern(
        Cause.VOLUME_MOUNT,
        r"(?i)unbound immediate PersistentVolumeClaims|persistentvolumeclaim \S+ (not found|is (lost|being deleted))"
        r"|fail\w* to .*kubernetes\.io~(csi|nfs|rbd|cephfs|glusterfs|fc|iscsi)|Multi-Attach error"
        r"|volume node affinity conflict|mount failed: exit status|hostPath type check failed",
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        _FACT,
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)nvidia-container-(cli|runtime)[\w.]*: .*\berror\b|calling nvml\.\w+: (?!.*lost)",
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
    ),
    Pattern(
        Cause.CONFIG_OR_RBAC,
        r"(?i)no runtime for \S+ is configured|RuntimeHandler \S+ not supported"
        r"|nvidia-container-(runtime|cli)\b.*(no such file|not found|not installed)",
        'Failed to create pod sandbox: rpc error: code = Unknown desc = no runtime for "nvidia" is configured',
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"\bexec: \"[^\"]+\": (executable file not found|stat .*no such file|permission denied)",
        'OCI runtime create failed: exec: "trian": executable file not found in $PATH: unknown',
        _FACT,
    ),
    Pattern(
        Cause.UNSCHEDULABLE,
        r"(?i)exceeded quota|number of devices unavailable|OutOfnvidia|\d+/\d+ nodes are available"
        r"|Insufficient (\w+\.com/|cpu|memory|nvidia)|ExceedsGPUQuota"
        r"|tasks? in gang unschedul|pod ?group .*\b(not ready|unschedul)|queue resource quota|Cannot schedule pods"
        r"|didn't trigger scale-up|No available node types can fulfill|Unable to allocate resources:"
        r"|insufficient (unused )?quota|couldn't assign flavors|More processors requested than permitted",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        _FACT,
    ),
    Pattern(
        Cause.CONFIG_OR_RBAC,
        r'(?i)\b(secret|configmap|serviceaccount|service account)s? "?\S+ (not found|is forbidden)|is forbidden: '
        r"|admission webhook .* denied|couldn't (find key|get secret)|violates PodSecurity"
        r"|failed quota: .* must specify|container has runAsNonRoot"
        r"|cannot (get|list|watch|create|patch|update|delete) resource|error looking up service account"
        r"|references non-existent (secret|config)|could not find the requested resource|no matches for kind",
        'Error: secret "hf-token" not found',
        _FACT,
    ),
    Pattern(
        Cause.VOLUME_MOUNT,
        r"(?i)(Mount|Attach)\w*\.\w+ failed|Unable to (attach or )?mount volumes|waiting for volumes to attach"
        r"|AttachVolume|MountDevice failed|driver name \S+ not found in the list of registered CSI",
        'MountVolume.SetUp failed for volume "pvc-1": rpc error: code = Internal',
    ),
    Pattern(
        Cause.DEADLINE_EXCEEDED,
        r"(?i)active (on the node )?longer than (the )?specified deadline|DUE TO TIME LIMIT|wall(time|clock) .*exceeded"
        r"|exceeded (its )?wall ?(time|clock)|TERM_RUNLIMIT|step exceeded its deadline"
        r"|MaxRuntimeExceeded|maximum (run ?time|duration) .*exceeded",
        "Pod was active on the node longer than the specified deadline",
        _FACT,
    ),
    Pattern(
        Cause.HOST_OOM,
        r"(?i)oom[-_ ]kill event|task \d+: Out Of Memory|exceeded (job |step )?memory limit|being OOM ?killed",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup.",
        _FACT,
    ),
    _reasons(Cause.HOST_OOM, "    Last State: Terminated, Reason: OOMKilled"),
    _reasons(Cause.DEADLINE_EXCEEDED, "Reason:         DeadlineExceeded"),
    _reasons(Cause.PREEMPTED_EVICTED, "  reason: Evicted"),
    _reasons(Cause.VOLUME_MOUNT, "  Warning  FailedMount  3m  kubelet  something that no pattern knows"),
    _reasons(Cause.CONFIG_OR_RBAC, "    Reason:  CreateContainerConfigError"),
    Pattern(
        Cause.UNSCHEDULABLE,
        r"\bPodScheduled\s+False\b",
        "  PodScheduled   False",
        Weight.MESSENGER,  # the events below it say why
    ),
    _reasons(Cause.UNSCHEDULABLE, "  Warning  FailedScheduling  3m  default-scheduler  something new"),
    Pattern(
        Cause.CONFIG_OR_RBAC,
        r"from server \((Unauthorized|Forbidden|NotFound|AlreadyExists|Gone|Invalid|BadRequest|MethodNotAllowed"
        r"|NotAcceptable|RequestEntityTooLarge|UnsupportedMediaType)\)",
        "Error from server (BadRequest): the server rejected our request",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.UNKNOWN,
        r"from server \((Conflict|ServerTimeout|Timeout|TooManyRequests|InternalError|ServiceUnavailable"
        r"|StoreReadError|Expired)\)|failed calling webhook",
        "Error from server (InternalError): Internal error occurred: failed calling webhook",
        Weight.MESSENGER,
    ),
)
