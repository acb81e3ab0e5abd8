"""``python -m argosy.steps.preflight --mode=warn -- COMMAND...``: one rank's part of the checks, then it is COMMAND.

The checks run in a process of their own, so that nothing of theirs (torch, a CUDA context, NCCL's memory) is left when
the training starts.
"""

from __future__ import annotations

import os
import subprocess
import sys

from argosy.steps.child_python import child_command, child_environ, die_with_parent
from argosy.steps.contract import env
from argosy.steps.contract.exit_codes import ExitCode

LIMIT_SECONDS = 600.0
"""A driver that hangs does not come back from a call, whatever limit the call has."""


def main() -> int:
    """Only returns when the training must not start."""
    mark = sys.argv.index("--")
    options, command = sys.argv[1:mark], sys.argv[mark + 1 :]
    pipe = os.environ.get(env.PROGRESS_FD)
    try:
        code = subprocess.run(
            child_command("argosy.steps.preflight.rank", *options),
            env=child_environ(),
            pass_fds=() if pipe is None else (int(pipe),),
            preexec_fn=die_with_parent(),
            timeout=LIMIT_SECONDS,
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"argosy: preflight: no end after {LIMIT_SECONDS:g} s", file=sys.stderr, flush=True)
        code = int(ExitCode.TRANSIENT)
    if code != 0:
        if "--mode=enforce" in options:
            return code if code > 0 else 128 - code
        print("argosy: preflight: it did not come to an end (see above); the training starts all the same", flush=True)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"argosy: launcher_usage: cannot start {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127


if __name__ == "__main__":
    sys.exit(main())
