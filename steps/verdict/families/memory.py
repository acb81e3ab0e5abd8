"""Memory of the GPU, of the host, and the shared segment between processes; the disk."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

PATTERNS = (
    Pattern(
        Cause.HOST_OOM,
        r"(?i)oom-kill:|out of memory: killed process|Memory cgroup out of memory|oom_kill [1-9]|invoked oom-killer",
        "Memory cgroup out of memory: Killed process 812 (python) total-vm:9120kB, anon-rss:8000kB",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.HOST_OOM,
        r"(?i)node running low on memory|killed due to memory pressure|java\.lang\.OutOfMemoryError"
        r"|^ray\.(\w+\.)*OutOfMemoryError|RayOutOfMemoryError|ray-oom-prevention|RAY_memory_\w+",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
    ),
    Pattern(  # the driver pins pages of the host, and has the same words for both
        Cause.HOST_OOM,
        r"(?i)\bbytes on host: \w+OUT_?OF_?MEMORY|could not allocate pinned host memory|exhausted: MemoryError",
        "E cuda_driver.cc:802] failed to alloc 34359738368 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ),
    Pattern(
        Cause.GPU_OOM,
        r"(?i)\b(CUDA|HIP|XPU|NPU|MPS|TPU|GPU)\b:? (error:? )?(\S+ )?(is |ran |runs |running |went )?out of memory"
        r"|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY"
        r"|cudaErrorMemoryAllocation|OOM when allocating tensor|ran out of memory in memory space hbm"
        r"|no available memory for the cache blocks|Error: CUDA o(u[tofmery ]*)?$"
        r"|Allocation type: HLO temp",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
    ),
    Pattern(
        Cause.GPU_OOM,
        r"(?i)resource[ _]?exhausted(error)?\b.*(memory|alloc|reserve|bytes)"
        r"|^\W*RuntimeError\)? Out of memory while",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 374 bytes.",
    ),
    Pattern(
        Cause.GPU_OOM,
        r"CUBLAS_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)|CUDNN_STATUS_ALLOC_FAILED|Cuda failure (2 )?'out of memory'",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"[Ee]rror while attaching to shared memory segment",
        "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-1 (size 9), error: No such file",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"joblib will operate in serial mode",
        "UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode",
        Weight.HINT,  # and a run lives with it
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"(?i)insufficient shared memory|unable to (open|allocate|mmap|resize) shared memory|shared memory \(shm\)"
        r"|unable to (write to|mmap \d+ bytes from|open) (the )?file </?torch_|out of shared memory",
        "RuntimeError: unable to open shared memory object </torch_33_1> in rw mode: No space left on device (28)",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"No space left on device: '/(psm_|torch_|sem\.|mp-)[^/']*'|failed to extend /dev/shm|/dev/shm.*No space left"
        r"|No space left.*(/dev/shm|posix_fallocate)"
        r"|posix_fallocate.*No space left",
        "NCCL WARN Error: failed to extend /dev/shm/nccl-Xe2 to 9637892 bytes",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"DataLoader worker .*killed by signal: Bus error",
        "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error.",
    ),
    Pattern(
        Cause.HOST_OOM,
        r"DataLoader worker .*killed by signal: Killed",
        "RuntimeError: DataLoader worker (pid(s) 1212) is killed by signal: Killed.",
    ),
    Pattern(
        Cause.SIGTERM,
        r"DataLoader worker .*killed by signal: (Terminated|Hangup|Interrupt)",
        "RuntimeError: DataLoader worker (pid 23616) is killed by signal: Terminated.",
        Weight.MESSENGER,
    ),
    Pattern(
        Cause.HOST_OOM,
        r"DefaultCPUAllocator: (can't allocate memory|not enough memory)",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried",
    ),
    Pattern(
        Cause.HOST_OOM,
        r"^(\w+\.)*_?(Array|Arrow)?MemoryError\b|std::bad_alloc|Errno 12\]|Error: .*Cannot allocate memory \(12\)"
        r"|cannot allocate memory for thread-local data"
        r"|can't start new thread|pthread_create failed|(fork|[Tt]hread)\b.*Resource temporarily unavailable",
        "OSError: [Errno 12] Cannot allocate memory",
    ),
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)failed to register layer.*no space left",
        "failed to register layer: write /usr/lib/libx.so: no space left on device",
    ),
    Pattern(
        Cause.VOLUME_MOUNT,
        r"(?i)stale (nfs )?file handle|Errno 1(16|21)\]|remote i/o error"
        r"|transport endpoint is not connected.{0,4}: ?['\"/]"
        r"|(access|stat|open)\b.*transport endpoint is not connected",
        "OSError: [Errno 116] Stale file handle: '/data/text'",
        code=ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.DISK_FULL,
        r"(?i)no space left on device|Errno (5|28|122)\]|\binput/output error|disk quota exceeded"
        r"|database or disk is full|StorageFull|read-only file system|Errno 30\]",
        "OSError: [Errno 28] No space left on device: '/argosy/workspace/out/ckpt.pt'",
    ),
    Pattern(
        Cause.DISK_FULL,
        r"PytorchStreamWriter failed|inline_container\.cc.*unexpected pos|write\(\): fd \d+ failed|iostream error"
        r"|File \S+\.(pt|pth|bin|ckpt|tar|safetensors) cannot be opened",
        "RuntimeError: PytorchStreamWriter failed writing file data/17: file write failed",
    ),
)
