"""Lines that only say that somebody else is gone."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern


def _lost(regex: str, example: str) -> Pattern:
    return Pattern(Cause.PEER_LOST, regex, example, Weight.CASCADE)


PATTERNS = (
    _lost(
        r"(?i)connection (was )?(closed|reset|aborted) by (the )?(remote )?peer",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:29123",
    ),
    _lost(r"ncclRemoteError|remote process exited or there was a network error", "ncclRemoteError: A call failed"),
    _lost(
        r"(?i)failed to recv, got 0 bytes", "RuntimeError: Failed to recv, got 0 bytes. Connection was likely closed."
    ),
    _lost(
        r"(?i)TCPStore.*(recvValue|sendBytes|broken pipe|closed)|recvValue failed",
        "[W socket.cpp:464] TCPStore recvValue failed on SocketImpl(fd=3)",
    ),
    _lost(r"\bBroken pipe\b|BrokenPipeError", "torch.distributed.DistNetworkError: failed to send: Broken pipe"),
    _lost(r"^KeyError: '(tcp|tls|grpc|ucx)s?://", "KeyError: 'tcp://10.10.0.20:44284'"),  # the list of who is there
    # The barrier passes on what it got: where that was a limit of time, its own line says so.
    _lost(
        r"monitoredBarrier, but received errors",
        "Rank 0 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 1",
    ),
    _lost(r"(?i)communicator was aborted", "RuntimeError: NCCL communicator was aborted on rank 0."),
    _lost(
        r"(?i)application timeout caused pair closure",
        "RuntimeError: [pair.cc:452] Application timeout caused pair closure",
    ),
    _lost(
        r"Connection closed by remote|Read error .*Connection reset|Connection reset by peer",
        "[rank0]: Connection closed by remote process",
    ),
    _lost(
        r"ConnectionResetError|ConnectionAbortedError|Software caused connection abort|Network dropped connection"
        r"|Cannot send after transport|Link has been severed|Communication error on send",
        "ConnectionAbortedError: [Errno 103] Software caused connection abort",
    ),
    _lost(
        r'"description":"EOF"|'
        r"Horovod has been shut down|(another|remote|other) (task|worker) (has )?(died|failed)"
        r"|heartbeat timeout\. This"
        r"|Socket closed\b|\b[Ss]tream removed|UnavailableError\b|failed to connect to all addresses"
        r"|detected fatal errors",
        "AbortedError: Horovod has been shut down. This was caused by an exception on one of the ranks",
    ),
    _lost(r"(?i)exit.?barrier.*(timeout|failed|error)", "Error waiting on exit barrier: Socket Timeout failed"),
    _lost(
        r"To avoid data inconsistency, we are taking the entire process down",
        "[Rank 1] To avoid data inconsistency, we are taking the entire process down.",
    ),
    _lost(
        r"Received a dump signal due to a collective timeout from rank",
        "[PG 0 Rank 3] Received a dump signal due to a collective timeout from rank 1 and we will try our best",
    ),
    _lost(
        r"DistNetworkError: .*(reset|closed|EOF)", "torch.distributed.DistNetworkError: Connection closed unexpectedly"
    ),
    _lost(
        r"peer process has unexpectedly disconnected",
        "An MPI communication peer process has unexpectedly disconnected.",
    ),
    _lost(
        r"(?i)remote (process|rank) (has )?(exited|died|failed)",
        "RuntimeError: remote process exited unexpectedly",
    ),
    _lost(
        r"Got completion .*status=(WR_FLUSH|IBV_WC_WR_FLUSH_ERR|.*\(5\)|5 )",
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with status=5 opcode=0 len=0 vendor err 249",
    ),
)
