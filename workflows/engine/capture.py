"""Run as ``python -I -S capture.py FILE COMMAND...``: keep the command's standard output in FILE and pass it on.

Standard library only: it stands inside pods whose output another step reads (``outputs.result``).
"""

from __future__ import annotations

import os
import signal
import sys

LIMIT = 256 * 1024


def main() -> int:
    """Exit as the command does; a signal that ended it ends this process too."""
    path, command = sys.argv[1], sys.argv[2:]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.close(reading)
        os.close(writing)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"argosy: cannot start {command}: {error.strerror}\n".encode())
            os._exit(127)
    os.close(writing)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os.kill(child, received))
    kept = 0
    with open(path, "wb", buffering=0) as target:
        while chunk := os.read(reading, 65536):
            os.write(1, chunk)
            target.write(chunk[: max(0, LIMIT - kept)])
            kept += len(chunk)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
