"""For each cause: what it means in one sentence, and what a person can do about it."""

from __future__ import annotations

from argosy.steps.contract.causes import Cause

ADVICE: dict[Cause, tuple[str, str]] = {
    Cause.USER_EXCEPTION: (
        "The training code raised an exception.",
        "Read the quoted line and the rank's log, fix the script, and run again; it resumes from the last checkpoint.",
    ),
    Cause.IMPORT_ERROR: (
        "A module is missing, or was built for other libraries than the image has.",
        "Add the module to the image or to the code folder, with the version that matches its torch and CUDA.",
    ),
    Cause.LAUNCHER_USAGE: (
        "torchrun could not start the script: wrong arguments, no such file, or an impossible world size.",
        "Compare script, module and [gang] in run.toml with the files in the code folder.",
    ),
    Cause.GPU_OOM: (
        "A GPU ran out of memory.",
        "Lower batch.micro_batch_size and raise batch.accumulation_steps by the same factor.",
    ),
    Cause.HOST_OOM: (
        "The kernel killed a process because the pod was out of memory.",
        "Raise gang.resources.memory, or use fewer or lighter data loader workers.",
    ),
    Cause.SHM_EXHAUSTED: (
        "/dev/shm is too small for what the ranks and loaders share.",
        "Raise gang.shm_size.",
    ),
    Cause.DISK_FULL: (
        "A disk is full.",
        "Free space, lower checkpoint.keep, or give the node more ephemeral storage; a full dataset cache names who "
        "uses what in it.",
    ),
    Cause.NCCL_TIMEOUT: (
        "A collective ran into its time limit: one rank stopped, straggled or hung.",
        "Look at the log of the rank that is missing from the collective; the others only waited.",
    ),
    Cause.COLLECTIVE_MISMATCH: (
        "The ranks ran different collectives, or one ended while others waited.",
        "Give every rank the same number of batches and the same branches around collectives.",
    ),
    Cause.PEER_LOST: (
        "A rank lost the connection to a peer, and nothing says why the peer went.",
        "Nothing, if the restart went on; if it returns, look at the node's own messages.",
    ),
    Cause.NCCL_NETWORK_INIT: (
        "NCCL could not open the network that it was to use: a wrong or missing interface or device.",
        "Check the fabric profile and NCCL_SOCKET_IFNAME against the interfaces and devices of the nodes.",
    ),
    Cause.NCCL_IB_ERROR: (
        "An InfiniBand or RoCE operation failed.",
        "Check the port's state and counters on the node named here; memlock and GID index are configuration.",
    ),
    Cause.NCCL_INVALID_USAGE: (
        "NCCL was used wrongly: a duplicate GPU, an invalid argument, mixed versions.",
        "Check that each rank takes its own device (LOCAL_RANK), and that every node has the same image.",
    ),
    Cause.CUDA_HARDWARE: (
        "The GPU or its links are defective.",
        "Drain the node named here and have it tested; the run avoids it.",
    ),
    Cause.CUDA_DRIVER: (
        "The CUDA driver is too old or finds no device.",
        "Use an image whose CUDA fits the driver, or ask for GPUs (gang.resources.gpu).",
    ),
    Cause.CUDA_ILLEGAL_ACCESS: (
        "A kernel read or wrote memory that is not its own, or an assert on the device failed.",
        "Run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; an index out of range is the usual reason.",
    ),
    Cause.RENDEZVOUS_TIMEOUT: (
        "Not all nodes came in time.",
        "See which node is missing; raise deadlines.check_in_seconds if it only pulls a large image.",
    ),
    Cause.RENDEZVOUS_CONNECT: (
        "A node could not reach the rendezvous endpoint.",
        "Check name resolution and network policies between the pods of the gang.",
    ),
    Cause.ADDRESS_IN_USE: ("A port was taken.", "Nothing: the next start uses another port."),
    Cause.PREEMPTED_EVICTED: (
        "The node was taken away: spot reclaim, drain, eviction or loss.",
        "Nothing: this is not counted against the run while it progresses.",
    ),
    Cause.UNSCHEDULABLE: (
        "The cluster has no room for the gang.",
        "Wait, ask for less in [gang.resources], or free capacity; the figures say whether it can ever fit.",
    ),
    Cause.IMAGE_PULL: (
        "An image could not be pulled.",
        "Check image and step_image in run.toml and the registry's access.",
    ),
    Cause.VOLUME_MOUNT: (
        "A volume could not be mounted, or does not hold what it should.",
        "Check that the PersistentVolumeClaims of [storage] and [dataset.cache] exist and that the latter, when it is "
        "read_only, was filled with this dataset.",
    ),
    Cause.CONFIG_OR_RBAC: (
        "The cluster refused an object: a missing Secret or a missing permission.",
        "Create the Secret, or bind the role that the message names.",
    ),
    Cause.S3_ACCESS: (
        "The object store refused access.",
        "Check credentials, the bucket policy and the clock of the node.",
    ),
    Cause.S3_MISSING: (
        "A bucket or an object does not exist.",
        "Check the uri; for a pinned dataset the data has changed since it was pinned.",
    ),
    Cause.S3_THROTTLE: (
        "The object store throttles or fails.",
        "Nothing at first; spread the keys or ask for more requests.",
    ),
    Cause.HUB_NETWORK: (
        "A model or dataset hub cannot be reached or refuses.",
        "Put what is needed into the dataset or the image; a gated download needs its token as a secret.",
    ),
    Cause.CHECKPOINT_CORRUPT: (
        "A checkpoint did not have the content that its manifest names.",
        "Nothing: it is quarantined, never deleted, and the one before it was taken. Check the storage if it returns.",
    ),
    Cause.CHECKPOINT_MISMATCH: (
        "The checkpoint does not fit the model or the number of ranks.",
        "Start with -p resume-from=none, or go back to the code or world size that wrote it.",
    ),
    Cause.DATA_CORRUPT: ("A sample or shard of the dataset cannot be read.", "Replace the shard that is named here."),
    Cause.DATALOADER_WORKER_KILLED: (
        "A data loader worker died.",
        "Look for a lack of memory or of /dev/shm behind it; fewer workers need less of both.",
    ),
    Cause.NUMERICS_NAN: (
        "The loss became NaN or infinite.",
        "Lower the learning rate or clip gradients; the run went back to before the onset.",
    ),
    Cause.DEADLINE_EXCEEDED: (
        "A time limit was reached.",
        "Raise the limit in [deadlines], then run again: it resumes.",
    ),
    Cause.SIGTERM: ("The run was stopped from outside.", "Run the same file again: it resumes."),
    Cause.HANG: (
        "No step was finished within the watched time.",
        "Read the stacks in the log of the rank named here; raise deadlines.hang_seconds if steps are that slow.",
    ),
    Cause.NATIVE_CRASH: (
        "A rank crashed in native code (SIGSEGV, SIGABRT, SIGFPE).",
        "Nothing, if it does not return; at the same place twice it is a bug in an extension or a driver.",
    ),
    Cause.FINISHED_WITHOUT_CHECKPOINT: (
        "Every rank ended well, but no verified checkpoint reached the declared end.",
        "Save at the end of the script, where checkpoint.path and checkpoint.include look; see checkpoint.end_step.",
    ),
    Cause.FENCED: ("A newer attempt owns the run.", "Nothing: look at the newer attempt."),
    Cause.UNKNOWN: ("No evidence supports any known cause.", "Read the logs of the rank that ended first."),
}
"""Cause -> (what it is, what to do)."""


def advice_for(cause: str, quote: str = "") -> tuple[str, str]:
    """The entry of a cause id; an id from a newer version is said to be unknown here.

    A quoted line of NCCL's that is known as such has a remedy of its own, narrower than the cause's.
    """
    try:
        meaning, remedy = ADVICE[Cause(cause)]
    except ValueError:
        return ADVICE[Cause.UNKNOWN]
    from argosy.steps.nccl.symptoms import symptom_of  # here: status and report need no such table

    symptom = symptom_of(quote) if quote else None
    return meaning, remedy if symptom is None or symptom.cause not in (None, cause) else symptom.remedy
