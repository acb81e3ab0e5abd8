"""Lines that look like trouble and are none."""

REGEXES = (
    (r"Could not find: libnccl-net", "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network"),
    # NCCL looks for plugins that need not be there, and says so at its level INFO (2.19 and 2.30 in other words).
    (
        r"NCCL INFO .*cannot open shared object file",
        "NCCL INFO ncclOsDlopen(libnccl-env.so) failed: libnccl-env.so: cannot open shared object file: No such file",
    ),
    (r"Failed to open libibverbs", "misc/ibvwrap.cu:61 WARN Failed to open libibverbs.so[.1]"),
    # A daemon on this machine that is down, not a peer.
    (
        r"dial unix \S+: connect: ",
        "while dialing dial unix /run/containerd/containerd.sock: connect: connection refused",
    ),
    (
        r"(?i)gradient overflow.*(skipping|reducing)(?!.* to (0(\.0*)?$|[\d.]+e-))",
        "Gradient overflow. Skipping step, reducing loss scale to 32768.0",
    ),
    (r"(?i)overflow.*attempted loss scale", "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536"),
    (r"Setting OMP_NUM_THREADS environment variable", "Setting OMP_NUM_THREADS environment variable for each process"),
    (r"destroy_process_group\(\) was not called", "Warning: WARNING: destroy_process_group() was not called before"),
    (r"NET/IB : No device found", "NCCL INFO NET/IB : No device found."),
    (r"^argosy: .*; it is asked again for \d+ s$", "argosy: 503 Slow Down: http://s3/b/k; it is asked again for 180 s"),
    (r"Root Cause \(first observed failure\)", "Root Cause (first observed failure):"),
    (
        r"To enable traceback see: ",
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
    ),
    (r"^\s*(error_file|time|host|rank)\s*: ", "  error_file: <N/A>"),
    (r'^\s*"?[\w.]+"?\s*[:=]\s*(false|null|none|0|"")\s*,?\s*$', '"OOMKilled": false,'),  # a field that denies it
    (r"severity=Corrected|AER: Corrected", "pcieport 0000:00:03.0: AER: Corrected error received: 0000:00:03.0"),
    (r"(?i)\bFutureWarning|DeprecationWarning", "FutureWarning: torch.distributed.launch is deprecated"),
)
"""(regular expression, a line it must match)."""
