"""What to do about a cause where argosy may not have run the training: nobody there has our fields or our restarts."""

from __future__ import annotations

from typing import Final

from argosy.steps.contract.causes import Cause

_ELSEWHERE: Final = {
    Cause.USER_EXCEPTION: "Read the quoted line and the rank's log and fix the script.",
    Cause.LAUNCHER_USAGE: "Compare how the script was called (path, arguments, number of ranks) with its own flags.",
    Cause.GPU_OOM: "Make the micro batch smaller and accumulate over more of them.",
    Cause.HOST_OOM: "Give the job more memory, or use fewer or lighter data loader workers.",
    Cause.SHM_EXHAUSTED: "Make /dev/shm larger: in a pod an emptyDir of medium Memory, with docker --shm-size.",
    Cause.DISK_FULL: "Free space, keep fewer checkpoints, or ask for more ephemeral storage.",
    Cause.PEER_LOST: "Look for what ended first on the peer, and at its node's own messages.",
    Cause.NCCL_NETWORK_INIT: "Check NCCL_SOCKET_IFNAME and NCCL_IB_HCA against what the nodes have.",
    Cause.CUDA_HARDWARE: "Drain the node named here and have it tested.",
    Cause.CUDA_DRIVER: "Use an image whose CUDA fits the driver, or ask for GPUs.",
    Cause.RENDEZVOUS_TIMEOUT: "See which node is missing; wait longer if it only pulls a large image.",
    Cause.ADDRESS_IN_USE: "End what holds the port, or take another one.",
    Cause.PREEMPTED_EVICTED: "Start it again from its newest checkpoint.",
    Cause.UNSCHEDULABLE: "Wait, ask for less, or free capacity.",
    Cause.IMAGE_PULL: "Check the image's name and the registry's access.",
    Cause.VOLUME_MOUNT: "Check that the volume's claim exists and can be mounted on that node.",
    Cause.CONFIG_OR_RBAC: "Create the Secret, or bind the role that the message names.",
    Cause.S3_MISSING: "Check the uri.",
    Cause.STORE_UNAVAILABLE: "Check the store's own health, its room and the network to it.",
    Cause.CREDENTIALS_EXPIRED: "Give the job a role or credentials that renew themselves.",
    Cause.CHECKPOINT_CORRUPT: "Start from the checkpoint before it. Check the storage if it returns.",
    Cause.CHECKPOINT_MISMATCH: "Start without it, or go back to the code or world size that wrote it.",
    Cause.NUMERICS_NAN: "Lower the learning rate or clip gradients, and go on from a checkpoint of before.",
    Cause.DEADLINE_EXCEEDED: "Raise the time limit, and go on from the newest checkpoint.",
    Cause.SIGTERM: "Find out who stopped it, and go on from the newest checkpoint.",
    Cause.HANG: "Look at the stacks of all ranks: the one that is elsewhere than the others holds them up.",
}
"""The rest of the causes' own remedies holds anywhere."""


def remedy_of(cause: Cause) -> str:
    """What a person can do, in one or two sentences."""
    return _ELSEWHERE.get(cause, cause.remedy)
