"""Nouns and troubles of each cause, for wordings that no rule knows; the narrower topic first."""

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.families.topics_of_running import RUNNING
from argosy.steps.verdict.families.words import ABSENT, CORRUPT, FAILED, GONE, LATE, STORE, UNEQUAL
from argosy.steps.verdict.topic import Topic

TOPICS = (
    Topic(
        Cause.NUMERICS_NAN,
        r"\b(loss\w*|grad\w*|logits?|weights?|activations?|norms?|scaler?|tensors?|elbo)\b",
        r"\b(nan|nans|inf|infs|infinite|non-?finite|diverged|not finite|exploding|minimum loss scale)\b",
        "stopping: elbo turned nan after 812 updates",
    ),
    Topic(
        Cause.NATIVE_CRASH,
        r"sig(segv|abrt|fpe|ill|trap|sys)\b|seg(mentation)? ?fault|core dump\w*|illegal instruction|floating.point exc"
        r"|stack smash|heap corrupt|general protection fault|segfault at|pure virtual|access violation|^\W*(free|(m|c"
        r"|re)alloc|munmap_chunk)\(\): "
        r"|double free|corrupted (size vs|double.linked|unsorted)|without an active exception",
        r".",
        'Thread 1 "python3" received signal SIGSEGV',
    ),
    Topic(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"\b(gpus?|cuda\w*|hip\w*|hsa\w*|roc\w+|kernels?|devices?|agent|npu|xpu|queue|amdgpu|aicore|ai ?core"
        r"|vector core)\b",
        r"illegal|memory (access )?(fault|violation)|aperture|access\w* memory beyond|page (not present|fault)"
        r"|misaligned"
        r"|out.of.(range|bounds?)|invalid (address|device function)|exception: aic|(kernel|task|hardware) (aborted"
        r"|exception)",
        "agent 2: page fault in a queue at 0x7f00",
    ),
    Topic(
        Cause.HOST_OOM,
        r"\b(host|system|node|cpu|ram|cgroup|container|pod|process|worker|kernel|instance|job)\b.*\b(memory|mem|oom)\b"
        r"|\bo\.?o\.?m[- ]?kill\w*|\bswap\b|\bRAM\b",
        r"kill\w*|exceed\w*|out of|limit|exhaust\w*|not enough|insufficient|ran out|low\b|pressure",
        "supervisor: the container went over its memory limit and was ended",
    ),
    Topic(
        Cause.GPU_OOM,
        r"\b(cuda|gpu|hip|rocm|npu|xpu|mps|tpu|hbm|vram|device|bfc)\b",
        r"out.of.memory|\boom\b|memory (exhaust|alloc)\w*|not enough memory|insufficient memory|alloc\w* .*fail"
        r"|fail\w* to alloc\w*",
        "aclrtMalloc failed: NPU memory exhausted, 2.1 GB asked",
    ),
    Topic(
        Cause.GPU_OOM,
        r"\bout of memory\b|\b\w*OutOfMemory\b|(not enough|exhausted) device memory",
        r".",
        "Ran out of memory in memory space vmem",
    ),
    Topic(
        Cause.SHM_EXHAUSTED,
        r"/dev/shm|shared.memory|\bshm\w*|\bsemlock|posix_fallocate|\bsigbus\b|bus error",
        rf"{FAILED}|too small|full|no space|exceed\w*|insufficient|limit|exhaust\w*|bus error|sigbus",
        "plasma: cannot map 2 GB of shared memory",
    ),
    Topic(
        Cause.IMAGE_PULL,
        r"\b(image|images|registry|registries|docker pull|pullimage|manifests?|ecr|acr|gcr|nvcr|artifact registry)\b"
        r"|\b(docker|quay|ghcr|gcr|nvcr)\.io\b|docker://|enroot-import",
        r"\bpull\w*|unauthori[sz]ed|manifest|no basic auth|backoff|back-off|unpack\w*|resolve reference"
        r"|(fail\w*|unable|cannot|could ?n.t|could not).*(docker|container|oci|singularity) image"
        r"|docker://.*(fail|denied|not found)|\b40[134]\b",
        "registry: manifest for team/train:9 is unknown to the mirror",
    ),
    Topic(
        Cause.PREEMPTED_EVICTED,
        r"\b(node|instance|vm|pod|spot|host|machine|worker|slice|job|tpu|taskrun|workload|agent)s?\b",
        r"preempt\w*|evict\w*|interrupt(ed|ion)\b|reclaim\w*|\bdrain\w*|imminent|shutting down|\b(is|was|has been)"
        r" (deleted|removed|shut ?down|rebooted|repaired)|(node|instance|host|vm|machine|agent) (has )?(died|failed"
        r"|crashed|closed)"
        r"|not ?ready|pod (is |was )?(deleted|missing|gone)|maintenance|\btaint\w*|\blame\b",
        "the worker's instance was shut down by its owner",
    ),
    Topic(
        Cause.UNSCHEDULABLE,
        r"\b(schedul\w*|zone\w*|\w*capacity|gang|pod ?group|quota|placement|flavou?rs?|capacity|reservation|nodepool"
        r"|queue|cohort"
        r"|nodes?|srun|sbatch|salloc)\b",
        r"insufficient|unschedul\w*|not enough|exceed\w*|cannot be (placed|satisf\w*)|infeasible|no (capacity|nodes"
        r"|room)|resource_pool_exhausted|enough (resources|capacity)|Insufficient\w*Capacity"
        r"|configuration is not available|not available now|overused"
        r"|unavailable capacity|out of (stock|capacity)|stockout|cannot fit|does ?n.t fit"
        r"|not admitted|by task is not available|\bpending\b",
        "autoscaler: out of capacity for 8 x h100 in this zone, gang not placed",
    ),
    Topic(
        Cause.CONFIG_OR_RBAC,
        r"\b(securebits|user namespace|(proc|sys|squash|overlay)\w* filesystem|seccomp\w*"
        r"|container creation"
        r"|apparmor|selinux|setuid)\b",
        FAILED + r"|not supported",
        "ERROR: failed to create a user namespace: operation not permitted",
    ),
    Topic(
        Cause.CONFIG_OR_RBAC,
        r"\b(secrets?|config ?maps?|service ?accounts?|rbac|(cluster)?role(binding)?s?|admission|webhook|namespaces?"
        r"|pod ?security|podspec|pod spec|spec\.\w+|priorityclass|quota|crd|no matches for kind|createcontainer\w*"
        r"|googleapi|unknown field)\b",
        rf"{ABSENT}|unknown field|required value|required '?[\w.]+'? permission|no \w+ with name|{FAILED}|forbidden"
        rf"|violat\w*|must specify|unauthori[sz]ed|not allowed|no matches",
        "Internal error: webhook x.y.io rejected the object",
    ),
    Topic(
        Cause.VOLUME_MOUNT,
        r"\b(u?n?mount\w*|pvcs?|pvs?|persistentvolume\w*|csi\w*|nfs\d?|cifs|fuse|efs|lustre|fsx|gcsfuse|volumes?"
        r"|lock on file|file locks?)\b",
        rf"{ABSENT}|{FAILED}|{LATE}|unbound|permission|stale|not connected|exit status",
        "fuse: the volume data of this pod is not connected",
    ),
    Topic(
        Cause.S3_MISSING,
        STORE + r"|\bkey\b.*\bs3|404 (blob|gs:)",
        ABSENT + r"|no (s3 )?(objects?|keys?) (were )?found|nosuch\w+",
        "object store: bucket train-eu does not exist",
    ),
    Topic(
        Cause.S3_ACCESS,
        STORE + r"|\b(aws|iam|sts|gcp|azure|access key|credential\w*|sas token|kerberos)\b",
        r"denied|\b403\b|\b401\b|forbidden|unauthori[sz]ed|credential\w*|signature|permission|not authorized|expired"
        r"|invalid.*(key|token)",
        "minio: the access key is not authorized to put objects",
    ),
    Topic(
        Cause.CONFIG_OR_RBAC,
        r"StatusCode|PermissionDenied|googleapis|\brpc\b|\bapi\b",
        r"permission[_ ]?denied|unauthenticated|forbidden",
        "rpc that creates the job: permission denied on this project",
    ),
    Topic(
        Cause.S3_THROTTLE,
        STORE,
        rf"\b(429|500|502|503|504)\b|\bexit(ed with)?( code| status)? [1-9]|curl\b.* error|slow ?down|throttl\w*"
        rf"|rate (limit"
        rf"|exceed)\w*|unavailable|{LATE}|{GONE}"
        rf"|unreachable"
        r"|internal error|connect\w*|too many requests",
        "gcs: upload of part 7 gave up, backend unavailable",
    ),
    Topic(
        Cause.CHECKPOINT_CORRUPT,
        r"\b(checkpoint\w*|ckpts?|snapshot|weights?|state ?file|safetensors|torch\.load|orbax)\b|\.(pth?|ckpt)\b"
        r"|storage has|the file might",
        CORRUPT,
        "restore: snapshot 1200 is truncated",
    ),
    Topic(
        Cause.CHECKPOINT_MISMATCH,
        r"\b(checkpoint\w*|ckpts?|state_?dict\w*|optimizer state\w*|restor\w+|resum\w+|pretrained|tensorstore\w*"
        r"|ocdbt|zarr\w*)\b",
        UNEQUAL + r"|\bset a tensor of shape|zarr\w*\W.*(does not exist|not found)|not found: .*zarr"
        r"|expected .* but (received|got|found)"
        r"|(missing|unexpected) (keys?|param\w*)|shapes?|not (found )?in (the )?(checkpoint|state_?dict)"
        r"|different (number|world|size)|unexpected key|\bvalid checkpoint\b",
        "cannot resume: optimizer state was written by 16 ranks, sizes differ",
    ),
    Topic(
        Cause.DATA_CORRUPT,
        r"\bnv(jpe?g|dec)\w*|\b(jpe?g|png|tiff|webp)_\w+|\bdecoders?__\w+",  # the decoder that speaks
        r"error|assert|fail\w*",
        "nvdec_session: error 7 in thread 0",
    ),
    Topic(
        Cause.DATA_CORRUPT,
        r"\b(images?|samples?|records?|shards?|parquet|jpe?g|png|tar|gzip|zip|zstd|snappy|lz4|dataset|tfrecord\w*"
        r"|audio|video|decod\w+|(read|parse|format|header)error|hdf5|arrow|json\w*|csv|index file|\.(bin|idx|npy"
        r"|npz))\b",
        CORRUPT + r"|fail\w* to (decode|read|parse)|could not (decode|read|parse)",
        "zstd: data of shard-00017 cannot be decoded",
    ),
    Topic(
        Cause.DISK_FULL,
        r"\b(disk|file ?system|storage|inodes?|partition|scratch|ephemeral|tmp|/tmp|quota|write\w*|writing)\b"
        r"|/overlay",
        r"\bfull\b|no space|quota exceed\w*|exceed\w* .*(quota|storage)|read-only file|input/output error|space left"
        r"|out of (disk )?space|\bENOSPC\b|insufficient (disk|space)",
        "writer: scratch is full, 0 bytes free",
    ),
    *RUNNING,
)
