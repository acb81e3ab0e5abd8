"""A torchrun that has imported itself: ``python -m argosy.steps.launch.standby``, started by :class:`Standby`.

Importing torch takes seconds, and happens once in a pod, while it waits for its peers, its data and its orders. Each
restart gets a fork of this process, so an agent that has never run anything. Nothing but the import has happened
before the fork: no thread of Python runs, and CUDA is not initialized.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import traceback
from typing import Any, NoReturn

from argosy.steps.child_python import die_with_parent

_READ = 1 << 16


def main() -> None:
    """Be the parent of one torchrun after the other, as the socket at stdin orders it; at its end, end."""
    gc.disable()  # a fifth of the import would be looking for garbage among what stays
    from torch.distributed import run

    gc.freeze()
    gc.enable()
    orders = socket.socket(fileno=0)
    prepare, pid = die_with_parent(), 0
    while (received := _receive(orders)) is not None:
        order, stderr = received
        if pid:
            os.waitpid(pid, 0)
        pid = os.fork()
        if pid == 0:
            prepare()
            _be_torchrun(run.main, order, stderr)
        os.close(stderr)
        _tell(orders, pid=pid)
        # Reaped when the next one is ordered: until then a late signal finds no other process by its number.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        _tell(orders, code=ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status)


def _receive(orders: socket.socket) -> tuple[dict[str, Any], int] | None:
    """{"argv", "env", "cwd"} in one line, and the stderr that came with it; None at the end."""
    line, handles = b"", []
    while not line.endswith(b"\n"):
        data, more, _, _ = socket.recv_fds(orders, _READ, 1)
        if not data:
            return None
        line += data
        handles += more
    return json.loads(line), handles[0]


def _tell(orders: socket.socket, **fields: int) -> None:
    orders.sendall(json.dumps(fields).encode() + b"\n")


def _be_torchrun(run: Any, order: dict[str, Any], stderr: int) -> NoReturn:
    """In the fork: what the order says, in a session of its own."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stderr, 2)
    os.close(stderr)
    os.environ.clear()
    os.environ.update(order["env"])
    code = 1
    try:
        os.chdir(order["cwd"])
        run(order["argv"])
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(bool(ending.code))
    except BaseException:
        traceback.print_exc()
    finally:
        # Tearing torch down takes longer than it is worth: nothing of ours is left to be written.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
