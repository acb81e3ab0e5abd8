"""GPUs, their driver, and what a kernel did wrong."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.pattern import Pattern, Weight

_BAD_XIDS = "46|48|54|62|64|74|79|95|109|110|119|120|136|140|143|151|155|156|158"

PATTERNS = (
    Pattern(
        Cause.CUDA_HARDWARE,
        rf"NVRM: Xid \([^)]*\): ({_BAD_XIDS})\b",
        "[88.1] NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus.",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"NVRM: Xid \([^)]*\): (13|31)\b",
        "NVRM: Xid (PCI:0000:1b:00): 31, pid=4711, name=python, Ch 00000008, MMU Fault",
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"(?i)uncorrectable (NVLink|ECC) error|uncorrectable ECC",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"(?i)fallen off the bus|GPU is lost|NVLink.*(fatal|error detected)|hardware stack error",
        "Unable to determine the device handle for GPU 0000:1b:00.0: GPU is lost.",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"Failed to bind NVLink SHARP|NVLS\) Multicast memory",
        "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152",
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"(?i)an illegal memory access was encountered|cudaErrorIllegalAddress",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"(?i)device-side assert triggered|unspecified launch failure|misaligned address|Assertion .* failed.*block:",
        "[rank1]: RuntimeError: CUDA error: device-side assert triggered",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)driver (version )?(on your system )?is (too old|insufficient)|driver version is insufficient",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)no CUDA-capable device|no CUDA GPUs are available|Found no NVIDIA driver",
        "RuntimeError: No CUDA GPUs are available",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)CUDA (driver )?initialization error|CUDA error: (system not yet initialized|initialization error)"
        r"|Error 80[0-4]:",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"invalid device ordinal",
        "RuntimeError: CUDA error: invalid device ordinal",
        code=ExitCode.CONFIGURATION,
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"no kernel image is available",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"Torch not compiled with CUDA enabled",
        "AssertionError: Torch not compiled with CUDA enabled",
    ),
)
