"""GPUs, their driver, and what a kernel did wrong."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_BAD_XIDS = "46|48|54|62|64|74|79|95|109|110|119|120|136|140|143|151|155|156|158"

PATTERNS = (
    Pattern(
        Cause.CUDA_HARDWARE,
        rf"NVRM: Xid \([^)]*\): ({_BAD_XIDS})\b|(?:XID|Xid)(?: error)?:? ({_BAD_XIDS})\b"
        rf"|caused by previous Xid ({_BAD_XIDS}|14[4-9]|150)\b",
        "[88.1] NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus.",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"NVRM: Xid \([^)]*\): 94\b",
        "NVRM: Xid (PCI:0000:5e:00): 94, pid=123, Contained: SM (0x1). RST: No, D-RST: No",
        code=ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"NVRM: Xid \([^)]*\): (13|31)\b|(?:XID|Xid)(?: error)?:? (13|31)\b",
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
        r"(?i)fallen off the bus|unhealthy devices|GPU[ _]is[ _]lost|NVLink.*(fatal|error detected)"
        r"|(internal )?hardware (stack )?error"
        r"|ECC_UNCORRECTABLE|ECCUncorrectable|device handle for GPU.*Unknown Error|RmInitAdapter failed"
        r"|rm_init_adapter failed|Cannot attach gpu|AER: Uncorrected|severity=Uncorrected",
        "Unable to determine the device handle for GPU 0000:1b:00.0: GPU is lost.",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"NVRM: API mismatch",
        "NVRM: API mismatch: the client has the version 535.129.03, but this kernel module has the version 535.54.03.",
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"NVRM: .*\b(NV_ERR_\w+|failed|Assertion|timed? ?out|Reset required)",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)",
        Weight.MACHINE,
    ),
    Pattern(
        Cause.CUDA_HARDWARE,
        r"Failed to bind NVLink SHARP|NVLS\) Multicast memory"
        r"|transport/nvls\.cc:\d+ NCCL WARN Cuda failure \d+ 'invalid",
        "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152",
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"(?i)an illegal memory access was encountered|\billegal address"
        r"|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS"
        r"|Memory access fault by GPU|illegal instruction was encountered|STATUS_EXECUTION_FAILED",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"(?i)device-side assert triggered|unspecified launch failure|misaligned address|Assertion .* failed.*block:"
        r"|block: \[\d.*Assertion .* failed",
        "[rank1]: RuntimeError: CUDA error: device-side assert triggered",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)driver (version )?(on your system )?is (too old|insufficient)|driver version is insufficient",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)no CUDA-capable device|no \w+ GPUs are available|Found no NVIDIA driver|CUDA_ERROR_NO_DEVICE"
        r"|couldn't communicate with the NVIDIA driver|Failed to initialize NVML"
        r"|libcuda\.so\.1: cannot open"
        r"|busy or unavailable|forward compatibility was attempted",
        "RuntimeError: No CUDA GPUs are available",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"(?i)CUDA (driver )?initialization error|CUDA error: (system not yet initialized|initialization error)"
        r"|\berror ?[=(]?80[0-4]\b|Error 80[0-4]:|Cuda failure (80[1-4]|(\d+ )?'initialization error')"
        r"|^RuntimeError: Unexpected error from cudaGetDeviceCount"
        r"|SYSTEM_NOT_READY|CUDA unknown error|CUDA_ERROR_UNKNOWN|cuda\.is_available\(\) is False",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"invalid device ordinal|machine only has: \[|deserialize object on CUDA device \d",
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
    Pattern(
        Cause.UNKNOWN,  # the line that follows tells which
        r"ncclUnhandledCudaError|unhandled cuda error",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        Weight.CASCADE,
    ),
)
