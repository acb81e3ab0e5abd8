"""Memory of the GPU, of the host, and the shared segment between processes."""

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.pattern import Pattern, Weight

PATTERNS = (
    Pattern(
        Cause.HOST_OOM,
        r"(?i)oom-kill:|out of memory: killed process|Memory cgroup out of memory|oom_kill [1-9]",
        "Memory cgroup out of memory: Killed process 812 (python) total-vm:9120kB, anon-rss:8000kB",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.GPU_OOM,
        r"(?i)(CUDA|HIP|XPU) out of memory|OutOfMemoryError",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
    ),
    Pattern(
        Cause.GPU_OOM,
        r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|Cuda failure 2 'out of memory'"
        r"|CUDA error: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"insufficient shared memory|unable to (open|allocate|mmap|resize) shared memory|shared memory \(shm\)",
        "RuntimeError: unable to open shared memory object </torch_33_1> in rw mode: No space left on device (28)",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"failed to extend /dev/shm|/dev/shm.*No space left|No space left.*(/dev/shm|posix_fallocate)"
        r"|posix_fallocate.*No space left",
        "NCCL WARN Error: failed to extend /dev/shm/nccl-Xe2 to 9637892 bytes",
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"DataLoader worker .*killed by signal: Bus error",
        "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error. It is possible that dataloader's",
    ),
    Pattern(
        Cause.HOST_OOM,
        r"DataLoader worker .*killed by signal: Killed",
        "RuntimeError: DataLoader worker (pid(s) 1212) is killed by signal: Killed.",
    ),
    Pattern(
        Cause.HOST_OOM,
        r"DefaultCPUAllocator: (can't allocate memory|not enough memory)",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried",
    ),
    Pattern(
        Cause.HOST_OOM,
        r"^(\w+\.)*_?(Array)?MemoryError\b|std::bad_alloc|Errno 12\] Cannot allocate memory",
        "OSError: [Errno 12] Cannot allocate memory",
    ),
)
