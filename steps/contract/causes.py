"""The closed list of causes, one row each, which every verdict, message, metric and report uses: public API."""

from __future__ import annotations

from argosy.steps.contract.cause_row import CauseRow
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.restart_rule import RestartRule
from argosy.steps.contract.trait import Trait
from argosy.steps.contract.weight import Weight


class Cause(CauseRow):
    """Why an attempt ended; the columns are those of :class:`CauseRow`."""

    USER_EXCEPTION = (
        "user_exception",
        ExitCode.USER_BUG,
        "The training code raised an exception.",
        "Read the quoted line and the rank's log and fix the script. New code is a new run, which begins from scratch: "
        "to go on from this one's checkpoints, run it under its name, `argosy run run.toml --run-id RUN_ID`.",
        RestartRule.SAME_EXCEPTION,
    )
    IMPORT_ERROR = (
        "import_error",
        ExitCode.CONFIGURATION,
        "A module is missing, or was built for other libraries than the image has.",
        "Add the module (argosy too) to the image, or to the code folder; its version has to match torch and CUDA.",
    )
    LAUNCHER_USAGE = (
        "launcher_usage",
        ExitCode.CONFIGURATION,
        "The script cannot be started as it was called: arguments, file or world size are wrong.",
        "Compare script, module, args and [gang] in run.toml with the code folder and with the flags of the script; "
        "the image needs python, and the argosy that compiled the run.",
    )
    GPU_OOM = (
        "gpu_oom",
        ExitCode.USER_BUG,
        "A GPU ran out of memory.",
        "Lower batch.micro_batch_size and raise batch.accumulation_steps by the same factor.",
        RestartRule.FRAGMENTED,
    )
    HOST_OOM = (
        "host_oom",
        ExitCode.TRANSIENT,
        "The pod's memory ran out: the kernel killed a process, or refused it what it asked for.",
        "Raise gang.resources.memory, or use fewer or lighter data loader workers.",
        RestartRule.SAME_STEP,
    )
    SHM_EXHAUSTED = (
        "shm_exhausted",
        ExitCode.CONFIGURATION,
        "/dev/shm is too small for what the ranks and loaders share.",
        "Raise gang.shm_size.",
    )
    DISK_FULL = (
        "disk_full",
        ExitCode.TRANSIENT,
        "A disk is full.",
        "Free space, lower checkpoint.keep, or ask for more ephemeral storage; a full dataset cache names its users.",
        RestartRule.ELSEWHERE_ONCE,
    )
    NCCL_TIMEOUT = (
        "nccl_timeout",
        ExitCode.TRANSIENT,
        "A collective ran into its time limit: one rank stopped, straggled or hung.",
        "Look at the log of the rank that is missing from the collective; the others only waited.",
        RestartRule.NODE_TWICE, Weight.MESSENGER, Trait.PROVISIONAL,
    )  # fmt: skip
    COLLECTIVE_MISMATCH = (
        "collective_mismatch",
        ExitCode.USER_BUG,
        "The ranks ran different collectives, or one ended while others waited.",
        "Give every rank the same number of batches and the same branches around collectives.",
    )
    PEER_LOST = (
        "peer_lost",
        ExitCode.TRANSIENT,
        "A rank lost the connection to a peer, and nothing says why the peer went.",
        "Nothing, if the restart went on; if it returns, look at the node's own messages.",
        RestartRule.BY_CODE, Weight.CASCADE, Trait.PROVISIONAL,
    )  # fmt: skip
    NCCL_NETWORK_INIT = (
        "nccl_network_init",
        ExitCode.CONFIGURATION,
        "NCCL could not open the network that it was to use: a wrong or missing interface or device.",
        "Check the fabric profile and NCCL_SOCKET_IFNAME against the interfaces and devices of the nodes.",
        RestartRule.BY_CODE, Weight.ROOT, Trait.PROVISIONAL,
    )  # fmt: skip
    NCCL_IB_ERROR = (
        "nccl_ib_error",
        ExitCode.SUSPECT_NODE,
        "An InfiniBand or RoCE operation failed, or a node's network is slower than that of its peers.",
        "Check the port's state and counters on the node named here; memlock and GID index are configuration.",
    )
    NCCL_INVALID_USAGE = (
        "nccl_invalid_usage",
        ExitCode.CONFIGURATION,
        "NCCL was used wrongly: a duplicate GPU, an invalid argument, mixed versions.",
        "Check that each rank takes its own device (LOCAL_RANK), and that every node has the same image.",
    )
    CUDA_HARDWARE = (
        "cuda_hardware",
        ExitCode.SUSPECT_NODE,
        "The GPU or its links are defective.",
        "Drain the node named here and have it tested; the run avoids it.",
    )
    CUDA_DRIVER = (
        "cuda_driver",
        ExitCode.CONFIGURATION,
        "The CUDA driver is too old or finds no device.",
        "Use an image whose CUDA fits the driver, or ask for GPUs (gang.resources.gpu).",
    )
    CUDA_ILLEGAL_ACCESS = (
        "cuda_illegal_access",
        ExitCode.USER_BUG,
        "A kernel read or wrote memory that is not its own, or an assert on the device failed.",
        "Run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; an index out of range is the usual reason.",
        RestartRule.SAME_PLACE,
    )
    RENDEZVOUS_TIMEOUT = (
        "rendezvous_timeout",
        ExitCode.TRANSIENT,
        "Not all nodes came in time.",
        "See which node is missing; raise deadlines.check_in_seconds if it only pulls a large image.",
        RestartRule.NODE_TWICE,
        Weight.MESSENGER,
        Trait.NEW_PODS,
    )
    RENDEZVOUS_CONNECT = (
        "rendezvous_connect",
        ExitCode.TRANSIENT,
        "A node could not reach the rendezvous endpoint.",
        "Check name resolution and network policies between the pods of the gang.",
        RestartRule.BY_CODE,
        Weight.MESSENGER,
    )
    ADDRESS_IN_USE = (
        "address_in_use",
        ExitCode.TRANSIENT,
        "A port was taken.",
        "Nothing: the next start uses another port.",
    )
    PREEMPTED_EVICTED = (
        "preempted_evicted",
        ExitCode.TRANSIENT,
        "The node was taken away: spot reclaim, drain, eviction or loss.",
        "Nothing: this is not counted against the run while it progresses.",
        RestartRule.UNCOUNTED,
        Weight.ROOT,
        Trait.NEW_PODS,
    )
    UNSCHEDULABLE = (
        "unschedulable",
        ExitCode.TRANSIENT,
        "The cluster has no room for the gang.",
        "Wait, ask for less in [gang.resources], or free capacity; the figures say whether it can ever fit.",
        RestartRule.RELEASED,
        Weight.ROOT,
        Trait.NEW_PODS,
    )
    IMAGE_PULL = (
        "image_pull",
        ExitCode.CONFIGURATION,
        "An image could not be pulled.",
        "Check image and step_image in run.toml, and how the registry lets pods in: gang.pod.image_pull_secrets.",
    )
    VOLUME_MOUNT = (
        "volume_mount",
        ExitCode.CONFIGURATION,
        "A volume could not be mounted, or does not hold what it should.",
        "Check that the claims of [storage] and [dataset.cache] exist; a read_only cache must hold this dataset.",
    )
    CONFIG_OR_RBAC = (
        "config_or_rbac",
        ExitCode.CONFIGURATION,
        "The cluster did not take an object: a missing Secret or permission, or a webhook that does not answer.",
        "Create the Secret that the message names; give the run's account the right that it lacks, `argosy install -n "
        "NAMESPACE --apply`; what a policy refuses, and which webhook is down, `argosy doctor run.toml` shows.",
    )
    S3_ACCESS = (
        "s3_access",
        ExitCode.CONFIGURATION,
        "The object store refused access.",
        "Check credentials, the bucket policy and the clock of the node; on a volume, who may write to it.",
        RestartRule.ACCESS,
    )
    S3_MISSING = (
        "s3_missing",
        ExitCode.CONFIGURATION,
        "A bucket or an object does not exist.",
        "Check the uri; for a pinned dataset the data has changed since it was pinned.",
    )
    S3_THROTTLE = (
        "s3_throttle",
        ExitCode.TRANSIENT,
        "The object store throttles.",
        "Nothing at first; spread the keys or ask for more requests.",
    )
    STORE_UNAVAILABLE = (
        "store_unavailable",
        ExitCode.TRANSIENT,
        "The object store cannot be reached, fails, is full, or did not keep what it was given.",
        "Check the store's own health, its room and the network to it; the run goes on once it answers.",
    )
    CREDENTIALS_EXPIRED = (
        "credentials_expired",
        ExitCode.TRANSIENT,
        "The credentials of the object store have expired.",
        "Give the pods a role or credentials that renew themselves; the restart reads them again.",
        RestartRule.ACCESS,
    )
    HUB_NETWORK = (
        "hub_network",
        ExitCode.TRANSIENT,
        "A model or dataset hub cannot be reached or refuses.",
        "Put what is needed into the dataset or the image; a gated download needs its token as a secret.",
    )
    CHECKPOINT_CORRUPT = (
        "checkpoint_corrupt",
        ExitCode.ROLL_BACK,
        "A checkpoint did not have the content that its manifest names.",
        "Nothing: it is quarantined, never deleted, and the one before it was taken. Check the storage if it returns.",
    )
    CHECKPOINT_MISMATCH = (
        "checkpoint_mismatch",
        ExitCode.CONFIGURATION,
        "The checkpoint does not fit the model or the number of ranks.",
        "Start with -p resume-from=none, or go back to the code or world size that wrote it.",
    )
    DATA_CORRUPT = (
        "data_corrupt",
        ExitCode.USER_BUG,
        "A sample or shard of the dataset cannot be read.",
        "Replace the shard that is named here.",
    )
    DATALOADER_WORKER_KILLED = (
        "dataloader_worker_killed",
        ExitCode.TRANSIENT,
        "A data loader worker died.",
        "Look for a lack of memory or of /dev/shm behind it; fewer workers need less of both.",
        RestartRule.ONCE,
    )
    NUMERICS_NAN = (
        "numerics_nan",
        ExitCode.ROLL_BACK,
        "The loss became NaN or infinite.",
        "Lower the learning rate or clip gradients; the run went back to before the onset.",
        RestartRule.SAME_STEP,
    )
    DEADLINE_EXCEEDED = (
        "deadline_exceeded",
        ExitCode.NEEDS_HUMAN,
        "A time limit was reached.",
        "Raise the limit in [deadlines] and go on from the last checkpoint: `argosy run run.toml --run-id RUN_ID`.",
    )
    SIGTERM = (
        "sigterm",
        ExitCode.PREEMPTED,
        "The run was stopped from outside.",
        "Go on from the last checkpoint: `argosy run run.toml --run-id RUN_ID`.",
    )
    HANG = (
        "hang",
        ExitCode.TRANSIENT,
        "No step was finished within the watched time.",
        "Read the stacks in the ranks' logs; raise deadlines.hang_seconds if steps are that slow.",
        RestartRule.HANG,
        Weight.MESSENGER,
    )
    NATIVE_CRASH = (
        "native_crash",
        ExitCode.TRANSIENT,
        "A rank crashed in native code (SIGSEGV, SIGABRT, SIGFPE, SIGILL).",
        "Nothing, if it does not return; at the same place twice it is a bug in an extension or a driver.",
        RestartRule.SAME_PLACE,
    )
    FINISHED_WITHOUT_CHECKPOINT = (
        "finished_without_checkpoint",
        ExitCode.USER_BUG,
        "Every rank ended well, but no verified checkpoint reached the declared end.",
        "Save at the end, where checkpoint.path and .include look, or with final=True; see checkpoint.end_step.",
    )
    FENCED = (
        "fenced",
        ExitCode.FENCED,
        "A newer attempt owns the run.",
        "Nothing: look at the newer attempt.",
    )
    UNKNOWN = (
        "unknown",
        ExitCode.TRANSIENT,
        "No evidence supports any known cause.",
        "Read the logs of the rank that ended first.",
        RestartRule.TWICE,
        Weight.MESSENGER,
    )
