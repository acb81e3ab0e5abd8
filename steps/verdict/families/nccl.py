"""NCCL and the collectives over it (and gloo): timeouts, mismatches, transports."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.nccl.symptoms import KNOWN
from argosy.steps.verdict.pattern import Pattern

_LATE = Weight.MESSENGER


def _row(name: str, weight: Weight = Weight.ROOT, code: ExitCode | None = None) -> Pattern:
    """A row of the table of symptoms, which also knows what to do about it."""
    symptom = KNOWN[name]
    assert symptom.cause is not None
    return Pattern(symptom.cause, symptom.regex, symptom.example, weight, code)


PATTERNS = (
    _row("timeout", _LATE),
    _row("stuck", _LATE),
    Pattern(
        Cause.NCCL_TIMEOUT,
        r"(failure|timeout\)) detected by watchdog|Timeout at (collective|NCCL work)|watchdog thread terminated with "
        r"exception: \[Rank \d+\] Watchdog|Watchdog caught collective|Some NCCL operations have failed or timed out",
        "[rank2]: Timeout at collective: ALLREDUCE, #730",
        _LATE,
    ),
    Pattern(
        Cause.NCCL_TIMEOUT,
        r"(?i)timed out waiting \d+ ?ms for (recv|send) operation",
        "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 10000ms for recv operation to complete",
        _LATE,
    ),
    Pattern(
        Cause.NCCL_TIMEOUT,
        r"\bEI000[26]\b|[Ss]tream sync(hronize)? timeout|reason=\[task timeout\]|Notify register times out"
        r"|Getting socket times out",
        "EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.",
        _LATE,
    ),
    Pattern(
        Cause.NCCL_TIMEOUT,
        r"pass monitoredBarrier|timed out waiting for rank",
        "RuntimeError: Rank 0: Ranks 1 failed to pass monitoredBarrier in 10000 ms",
        _LATE,
    ),
    Pattern(
        Cause.NCCL_TIMEOUT,
        r"DistBackendError(?!.*ncclUniqueId).*(timeout|timed out)|NCCL operation timed out",
        "torch.distributed.DistBackendError: NCCL operation timed out after 600000 ms",
        _LATE,
    ),
    Pattern(
        Cause.COLLECTIVE_MISMATCH,
        r"(?i)detected mismatch between collectives|collectives? (shape )?mismatch|mismatched collective"
        r"|Collective ops is aborted by: \w+ mismatch",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective ALLREDUCE",
    ),
    _row("truncated"),
    Pattern(
        Cause.COLLECTIVE_MISMATCH,
        r"op\.preamble\.length <= op\.nbytes|NCCL WARN (Mismatched size|Message truncated)",
        "RuntimeError: [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 8192 vs 4096",
    ),
    Pattern(
        Cause.COLLECTIVE_MISMATCH,
        r"Expected to have finished reduction in the prior iteration|appears not to match \w+ of the same param",
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
    ),
    Pattern(
        Cause.NCCL_INVALID_USAGE,
        r"Duplicate GPU detected|rank \d+ of \d+ ranks has already checked in",
        "NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000",
    ),
    _row("mixed-versions"),
    _row("no-algorithm"),
    Pattern(
        Cause.NCCL_INVALID_USAGE,
        r"ncclInvalid(Usage|Argument)|NCCL (error|failure)\b.*\binvalid (argument|usage)",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        Weight.GENERIC,
    ),
    _row("memlock", code=ExitCode.CONFIGURATION),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"(?i)max(imum)? locked memory|\bulimit -l\b|RLIMIT_MEMLOCK",
        "UCX ERROR mlx5_0: ibv_create_cq() failed: Please set max locked memory (ulimit -l) to 'unlimited'",
        code=ExitCode.CONFIGURATION,
    ),
    _row("bad-gid", code=ExitCode.CONFIGURATION),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"\bibv_\w+ failed",
        "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_4:1",
    ),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"mlx5: .*got completion with error"
        r"|Got completion (from peer .*)?with (status=|error )(?!5\b)(.*\((?!5\))\d+\)|\d+|IBV_WC_(?!WR_FLUSH))",
        "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129",
    ),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"(?i)(transport|RNR) retry count(er)? exceeded|\b(local (length|QP operation|EE context operation|protection)"
        r"|remote (invalid request|access|operation)|memory (management|bind) operation)( error\b| on mlx)"
        r"|local access violation",
        "ibv_poll_cq: work completion 12: transport retry counter exceeded",  # ibv_wc_status_str
    ),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"NET/IB.*async fatal event|port error\(10\)|Detected mixed local Net device counts",
        "NCCL WARN NET/IB : mlx5_3:1 async fatal event: port error",
    ),
    Pattern(
        Cause.NCCL_IB_ERROR,
        r"NET/OFI .*completed with error",
        "NET/OFI Request 0x7f14cc5b60c0 completed with error. RC: 113. Error: 2 (UNDELIVERABLE). Completed length: 0",
    ),
    _row("no-network"),
    _row("imex"),
    _row("no-interface"),
    Pattern(
        Cause.NCCL_NETWORK_INIT,
        r"(?i)unable to find address for:|unable to resolve hostname to a \(local\) address"
        r"|makeDeviceFor.*unable|is neither AF_INET"
        r"|Socket creation failed|Address family not supported|NCCL.*(No route to host|Network is unreachable)",
        "RuntimeError: makeDeviceForHostname(): unable to resolve hostname to a (local) address",
    ),
    _row("no-connection", _LATE),
    Pattern(
        Cause.NCCL_NETWORK_INIT,
        r"NCCL (WARN|INFO) .*(Call to connect|Connect to|socket\w*Connect)\b.*(failed|refused|timed out)",
        "NCCL WARN socketStartConnect: Connect to 10.0.0.2<17943> failed : Software caused connection abort",
        _LATE,
    ),
    Pattern(
        Cause.CUDA_DRIVER,
        r"\bE[JL]\d{4}: ",  # CANN numbers its errors by who speaks: the driver, and what it starts for HCCL
        "EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process.",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.PEER_LOST,
        r"\bHccl\w+, error code is",
        "RuntimeError: OPS function error: HcclAllreduce, error code is 6",
        Weight.CASCADE,
    ),
    Pattern(  # a peer that is slow, not there yet, or gone again
        Cause.NCCL_NETWORK_INIT,
        r"(?i)connectFullMesh failed .*(time(d )?-?out|refused|reset by peer|closed by peer|broken pipe"
        r"|no route to host|unreachable|connection abort|\beof\b)"
        r"|connect(ion)? .*gloo.*refused|gloo.*connection refused",
        "RuntimeError: Gloo connectFullMesh failed with [pair.h:301] Connect timeout [none]",
        Weight.CASCADE,
        ExitCode.TRANSIENT,
    ),
    Pattern(  # the mesh is what a group of gloo begins with: no rank has spoken to another one yet
        Cause.NCCL_NETWORK_INIT,
        r"connectFullMesh failed",
        "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error",
        Weight.CASCADE,
    ),
    Pattern(
        Cause.NCCL_NETWORK_INIT,
        r"ncclSystemError|unhandled system error",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        Weight.CASCADE,
    ),
    Pattern(  # the trace of a call: what failed at the system (2) or inside (3) before the ranks knew each other
        Cause.NCCL_NETWORK_INIT,
        r"NCCL INFO (misc/)?bootstrap\.cc:\d+ -> [23]\b",
        "node:11509:11566 [6] NCCL INFO bootstrap.cc:90 -> 3",
        Weight.CASCADE,
    ),
    Pattern(
        Cause.UNKNOWN,
        r"ncclInternalError|NCCL (error|failure)\b.*\binternal error|\bHCCL error in: ",
        "ncclInternalError: Internal check failed.",
        Weight.CASCADE,  # of a peer, the network or memory, never of the program
    ),
)
