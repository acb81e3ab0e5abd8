"""Whole enumerations of statuses: of CUDA and its libraries, of RPCs, of the operating system."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_CUDA = (
    r"(?:(?i:cuda|hip)(?i: driver| runtime)?(?i: error| failure)(?: ?\(\d+\)| \d+)? ?[:']? ?'?"
    r"|Triton Error \[\w+\]: |NCCL WARN [\w ]+: \d+ )"
)
"""What torch, NCCL, THC and Triton put before the words of cudaGetErrorString
(https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html)."""


def _cuda(cause: Cause, words: str, names: str, example: str, weight: Weight = Weight.ROOT) -> Pattern:
    in_a_file = rf"^Error (?i:{words})[\w ]* at line \d+ in file"  # as bitsandbytes says it
    return Pattern(cause, rf"{_CUDA}(?i:{words})|\bcudaError(?:{names})\b|{in_a_file}", example, weight)


def _rpc(cause: Cause, codes: str, classes: str, example: str, weight: Weight) -> Pattern:
    """A canonical status (https://grpc.io/docs/guides/status-codes/) in the words of XLA, gRPC and TensorFlow."""
    said = rf"RuntimeError: (?:{codes})\b|StatusCode\.(?:{codes})\b|errors_impl\.(?:{classes})Error\b"
    said += rf"|\b(?:{classes}): From /job:"  # as TensorFlow passes on what another task told
    return Pattern(cause, said, example, weight)


PATTERNS = (
    _cuda(
        Cause.CUDA_DRIVER,
        r"CUDA driver is a stub|API call is not supported in the installed|device doesn't have valid Grid"
        r"|integrity check"
        r"|startup failure|device kernel image is invalid|a PTX JIT|PTX JIT|the provided PTX|exclusive-thread device"
        r"|OS call failed|operation not supported|file not found|shared object|named symbol not found"
        r"|MPS |the MPS client|the remote procedural call between|the hardware resources required to|peer access is not"
        r"|Driver is newer|incompatible driver|operation not permitted('|$)|invalid device function",
        r"StubLibrary|CallRequiresNewerDriver|DeviceNotLicensed|SoftwareValidityNotEstablished|StartupFailure"
        r"|InvalidKernelImage|InvalidPtx|Jit\w+|UnsupportedPtxVersion|OperatingSystem|NotSupported|FileNotFound"
        r"|SharedObject\w+|SymbolNotFound|Mps\w+|PeerAccessUnsupported|System\w+|Compat\w+|InsufficientDriver|NoDevice"
        r"|InitializationError|DevicesUnavailable|InvalidDeviceFunction|NoKernelImageForDevice",
        "NCCL WARN Cuda failure 222 'the provided PTX was compiled with an unsupported toolchain.'",
    ),
    _cuda(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"an illegal instruction|invalid program counter|operation not supported on (global|shared)"
        r"|the launch timed out"
        r"|invalid address of constant",
        r"IllegalInstruction|InvalidPc|InvalidAddressSpace|MisalignedAddress|LaunchFailure|LaunchTimeout|Assert",
        "RuntimeError: CUDA error: the launch timed out and was terminated",
    ),
    _cuda(
        Cause.CUDA_HARDWARE,
        r"an async error has occ?ured in external|hardware stack error|Invalid access of peer GPU",
        r"ExternalDevice|HardwareStackError|ECCUncorrectable|NvlinkUncorrectable|Contained",
        "what():  cudaErrorExternalDevice: an async error has occured in external entity outside of CUDA",
    ),
    _cuda(  # of a driver that had begun to work: no configuration, and nothing that is named
        Cause.UNKNOWN,
        r"unknown error",
        r"Unknown",
        "[Rank 7] NCCL watchdog thread terminated with exception: CUDA error: unknown error",
        Weight.GENERIC,
    ),
    Pattern(  # a shape or a stream that the program asked for
        Cause.USER_EXCEPTION,
        _CUDA
        + r"(?i:invalid (configuration|pitch|texture|surface|resource|host|device pointer|copy)|peer access (is al"
        r"ready|has not)|operation not permitted (when|on)|too many resources|(un)?mapping of|launch (would|uses))",
        "RuntimeError: CUDA error: invalid configuration argument",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"CU(BLAS|DNN|SOLVER|SPARSE|FFT|RAND)_(STATUS_)?(ARCH_MISMATCH|VERSION_MISMATCH|LICENSE_ERROR|SUBLIBRARY\w+"
        r"|RUNTIME_PREREQUISITE_MISSING|INITIALIZATION_FAILED)",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ARCH_MISMATCH",
    ),
    Pattern(
        Cause.GPU_OOM,
        r"CU(DNN|SOLVER|SPARSE|FFT|RAND)_(STATUS_)?(ALLOC_FAILED|ALLOCATION_FAILED|NOT_INITIALIZED)"
        r"|CUDNN_STATUS_INTERNAL_ERROR_(HOST|DEVICE)_ALLOC\w+",
        "RuntimeError: cuSOLVER error: CUSOLVER_STATUS_ALLOC_FAILED",
    ),
    Pattern(
        Cause.CUDA_ILLEGAL_ACCESS,
        r"CU(BLAS|DNN|SOLVER|SPARSE|FFT|RAND)_(STATUS_)?(INTERNAL_ERROR|MAPPING_ERROR|EXEC_FAILED|EXECUTION_FAILED\w*"
        r"|LAUNCH_FAILURE)",
        "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR",
    ),
    _rpc(
        Cause.PEER_LOST,
        "UNAVAILABLE|ABORTED|CANCELLED",
        "Unavailable|Aborted|Cancelled",
        "jaxlib.xla_extension.XlaRuntimeError: CANCELLED: the peer is gone",
        Weight.CASCADE,
    ),
    _rpc(
        Cause.RENDEZVOUS_TIMEOUT,
        "DEADLINE_EXCEEDED",
        "DeadlineExceeded",
        "tensorflow.python.framework.errors_impl.DeadlineExceededError: Deadline Exceeded",
        Weight.MESSENGER,
    ),
    _rpc(
        Cause.CONFIG_OR_RBAC,
        "PERMISSION_DENIED|UNAUTHENTICATED",
        "PermissionDenied|Unauthenticated",
        "	status = StatusCode.UNAUTHENTICATED",
        Weight.ROOT,
    ),
    _rpc(
        Cause.GPU_OOM,
        "RESOURCE_EXHAUSTED",
        "ResourceExhausted",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: 2 root error(s) found.",
        Weight.GENERIC,
    ),
    _rpc(
        Cause.DATA_CORRUPT,
        "DATA_LOSS",
        "DataLoss",
        "XlaRuntimeError: DATA_LOSS: the record is not whole",
        Weight.ROOT,
    ),
)
