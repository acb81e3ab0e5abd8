"""Lines that look like trouble and are none."""

REGEXES = (
    (r"Could not find: libnccl-net", "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network"),
    # NCCL looks for plugins that need not be there, and says so at its level INFO (2.19 and 2.30 in other words).
    (
        r"NCCL INFO .*cannot open shared object file",
        "NCCL INFO ncclOsDlopen(libnccl-env.so) failed: libnccl-env.so: cannot open shared object file: No such file",
    ),
    (r"(?i)gradient overflow.*(skipping|reducing)", "Gradient overflow. Skipping step, reducing loss scale to 32768.0"),
    (r"(?i)overflow.*attempted loss scale", "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536"),
    (r"Setting OMP_NUM_THREADS environment variable", "Setting OMP_NUM_THREADS environment variable for each process"),
    (r"destroy_process_group\(\) was not called", "Warning: WARNING: destroy_process_group() was not called before"),
    (r"NET/IB : No device found", "NCCL INFO NET/IB : No device found."),
    (r"Root Cause \(first observed failure\)", "Root Cause (first observed failure):"),
    (r"^\s*(exitcode|error_file|traceback|time|host|rank)\s*: ", "  exitcode  : -9 (pid: 812)"),
    (r"(?i)\b(retrying|will retry|attempt \d+ ?(/|of) ?\d+)\b", "SlowDown, retrying in 2 s"),
    (r"Signal \d+ \(SIG\w+\) received by PID", "traceback : Signal 9 (SIGKILL) received by PID 812"),
)
"""(regular expression, a line it must match)."""
