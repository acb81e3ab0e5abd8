"""Finding each other: rendezvous, names, ports."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_LATE = Weight.MESSENGER

PATTERNS = (
    Pattern(
        Cause.ADDRESS_IN_USE,
        r"(?i)EADDRINUSE|address already in use|port:? \d+ (is )?already in use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    Pattern(
        Cause.RENDEZVOUS_TIMEOUT,
        r"Rendezvous(Timeout|Closed)Error|DEADLINE_EXCEEDED: Barrier timed out|cluster registration failed"
        r"|(?i:timed out waiting (for (all )?(tasks|peers|workers|nodes|ranks) |on barrier))"
        r"|Unable to meet other processes",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        _LATE,
    ),
    Pattern(
        Cause.RENDEZVOUS_TIMEOUT,
        r"still waiting for response from worker|Waiting to connect to client mesh master",
        "CreateSession still waiting for response from worker: /job:worker/replica:0/task:1",
        Weight.HINT,  # TensorFlow, XLA: where a log ends with it
    ),
    Pattern(
        Cause.RENDEZVOUS_TIMEOUT,
        r"\d+/\d+ (clients|workers) joined|waiting for clients|DistStoreError: Socket Timeout",
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        _LATE,
    ),
    Pattern(  # of a store that may have gone since
        Cause.RENDEZVOUS_TIMEOUT,
        r"^RuntimeError: Socket Timeout",
        "RuntimeError: Socket Timeout",
        Weight.CASCADE,
    ),
    Pattern(
        Cause.RENDEZVOUS_TIMEOUT,
        r"(?i)store.?based barrier|wait timeout after \d+ms, keys|ncclUniqueId .*timeout",
        "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//1",
        _LATE,
    ),
    Pattern(
        Cause.RENDEZVOUS_CONNECT,
        r"(?i)gai error|Name or service not known|Temporary failure in name resolution|nodename nor servname"
        r"|Could not resolve hostname",
        "[W socket.cpp:464] The IPv6 network addresses of (gang-0.gang, 29500) cannot be retrieved (gai error: -2)",
        _LATE,
    ),
    Pattern(
        Cause.RENDEZVOUS_CONNECT,
        r"RendezvousConnectionError|client socket has (failed|timed out)|connect\(\) timed out"
        r"|GCS .*may not have started|Did GCS start",
        "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (a, 1)",
        _LATE,
    ),
    Pattern(
        Cause.CONFIG_OR_RBAC,
        r"Permission denied \((publickey|password|keyboard)|Host key verification failed",
        "root@worker-1: Permission denied (publickey,password).",
        _LATE,
    ),
    Pattern(
        Cause.RENDEZVOUS_CONNECT,
        r"(?i)Command '?\[?'?ssh .*exit status 255|\bssh exited with exit code 255|ssh: connect to host"
        r"|kex_exchange_identification"
        r"|ConnectionRefusedError|DistNetworkError.*connection refused|failed to connect to remote host"
        r"|Connection (refused|timed out)\b|Errno (99|10[01]|11[023])\]|No route to host|Network is (down|unreachable)"
        r"|Host is down|Cannot assign requested address",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        _LATE,
    ),
    Pattern(
        Cause.RENDEZVOUS_CONNECT,
        r"ORTE was unable to reliably start",
        "ORTE was unable to reliably start one or more daemons.",
        Weight.HINT,  # ssh or a shell has said why
    ),
)
