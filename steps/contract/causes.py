"""The closed list of causes: what a failed attempt is called, and the exit code that goes with it.

Every verdict, message, metric and report uses these ids and no others.
"""

from __future__ import annotations

from enum import StrEnum

from argosy.steps.contract.exit_codes import ExitCode


class Cause(StrEnum):
    """Why an attempt ended."""

    USER_EXCEPTION = "user_exception"
    IMPORT_ERROR = "import_error"
    LAUNCHER_USAGE = "launcher_usage"
    GPU_OOM = "gpu_oom"
    HOST_OOM = "host_oom"
    SHM_EXHAUSTED = "shm_exhausted"
    DISK_FULL = "disk_full"
    NCCL_TIMEOUT = "nccl_timeout"
    COLLECTIVE_MISMATCH = "collective_mismatch"
    PEER_LOST = "peer_lost"
    NCCL_NETWORK_INIT = "nccl_network_init"
    NCCL_IB_ERROR = "nccl_ib_error"
    NCCL_INVALID_USAGE = "nccl_invalid_usage"
    CUDA_HARDWARE = "cuda_hardware"
    CUDA_DRIVER = "cuda_driver"
    CUDA_ILLEGAL_ACCESS = "cuda_illegal_access"
    RENDEZVOUS_TIMEOUT = "rendezvous_timeout"
    RENDEZVOUS_CONNECT = "rendezvous_connect"
    ADDRESS_IN_USE = "address_in_use"
    PREEMPTED_EVICTED = "preempted_evicted"
    UNSCHEDULABLE = "unschedulable"
    IMAGE_PULL = "image_pull"
    VOLUME_MOUNT = "volume_mount"
    CONFIG_OR_RBAC = "config_or_rbac"
    S3_ACCESS = "s3_access"
    S3_MISSING = "s3_missing"
    S3_THROTTLE = "s3_throttle"
    HUB_NETWORK = "hub_network"
    CHECKPOINT_CORRUPT = "checkpoint_corrupt"
    CHECKPOINT_MISMATCH = "checkpoint_mismatch"
    DATA_CORRUPT = "data_corrupt"
    DATALOADER_WORKER_KILLED = "dataloader_worker_killed"
    NUMERICS_NAN = "numerics_nan"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    SIGTERM = "sigterm"
    HANG = "hang"
    NATIVE_CRASH = "native_crash"
    FINISHED_WITHOUT_CHECKPOINT = "finished_without_checkpoint"
    FENCED = "fenced"
    UNKNOWN = "unknown"


EXIT_CODE: dict[Cause, ExitCode] = {
    Cause.USER_EXCEPTION: ExitCode.USER_BUG,
    Cause.IMPORT_ERROR: ExitCode.CONFIGURATION,
    Cause.LAUNCHER_USAGE: ExitCode.CONFIGURATION,
    Cause.GPU_OOM: ExitCode.USER_BUG,
    Cause.HOST_OOM: ExitCode.TRANSIENT,
    Cause.SHM_EXHAUSTED: ExitCode.CONFIGURATION,
    Cause.DISK_FULL: ExitCode.TRANSIENT,
    Cause.NCCL_TIMEOUT: ExitCode.TRANSIENT,
    Cause.COLLECTIVE_MISMATCH: ExitCode.USER_BUG,
    Cause.PEER_LOST: ExitCode.TRANSIENT,
    Cause.NCCL_NETWORK_INIT: ExitCode.CONFIGURATION,
    Cause.NCCL_IB_ERROR: ExitCode.SUSPECT_NODE,
    Cause.NCCL_INVALID_USAGE: ExitCode.CONFIGURATION,
    Cause.CUDA_HARDWARE: ExitCode.SUSPECT_NODE,
    Cause.CUDA_DRIVER: ExitCode.CONFIGURATION,
    Cause.CUDA_ILLEGAL_ACCESS: ExitCode.USER_BUG,
    Cause.RENDEZVOUS_TIMEOUT: ExitCode.TRANSIENT,
    Cause.RENDEZVOUS_CONNECT: ExitCode.TRANSIENT,
    Cause.ADDRESS_IN_USE: ExitCode.TRANSIENT,
    Cause.PREEMPTED_EVICTED: ExitCode.TRANSIENT,
    Cause.UNSCHEDULABLE: ExitCode.TRANSIENT,
    Cause.IMAGE_PULL: ExitCode.CONFIGURATION,
    Cause.VOLUME_MOUNT: ExitCode.CONFIGURATION,
    Cause.CONFIG_OR_RBAC: ExitCode.CONFIGURATION,
    Cause.S3_ACCESS: ExitCode.CONFIGURATION,
    Cause.S3_MISSING: ExitCode.CONFIGURATION,
    Cause.S3_THROTTLE: ExitCode.TRANSIENT,
    Cause.HUB_NETWORK: ExitCode.TRANSIENT,
    Cause.CHECKPOINT_CORRUPT: ExitCode.ROLL_BACK,
    Cause.CHECKPOINT_MISMATCH: ExitCode.CONFIGURATION,
    Cause.DATA_CORRUPT: ExitCode.USER_BUG,
    Cause.DATALOADER_WORKER_KILLED: ExitCode.TRANSIENT,
    Cause.NUMERICS_NAN: ExitCode.ROLL_BACK,
    Cause.DEADLINE_EXCEEDED: ExitCode.NEEDS_HUMAN,
    Cause.SIGTERM: ExitCode.PREEMPTED,
    Cause.HANG: ExitCode.TRANSIENT,
    Cause.NATIVE_CRASH: ExitCode.TRANSIENT,
    Cause.FINISHED_WITHOUT_CHECKPOINT: ExitCode.USER_BUG,
    Cause.FENCED: ExitCode.FENCED,
    Cause.UNKNOWN: ExitCode.TRANSIENT,
}
"""The code of a cause's first occurrence; the ledger may escalate it (same node twice: 71, and so on)."""
