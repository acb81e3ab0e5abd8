"""Questions to /proc: who descends from whom, who carries a token, when a process began. Linux only.

Standard library only and no imports of ours: the pod's first process uses it too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

GONE_SECONDS = 10.0
_PF_EXITING = 0x4
"""Flag of the kernel, set before it closes a process's files (``do_exit``)."""


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which the process began, or None; with the pid it names a process for good.

    One whose first thread is a zombie lives as long as another thread does: it holds its files and ports until then.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The name in parentheses may hold anything, so fields count from the last parenthesis (proc(5)).
            rest = stat.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if rest[0] in (b"Z", b"X") and int(rest[17]) <= 1 else int(rest[19])


def is_running(pid: int) -> bool:
    """False once the process has begun to end: it has not closed its files before this turns False."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            rest = stat.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return rest[0] not in (b"Z", b"X") and not int(rest[6]) & _PF_EXITING


def state(pid: int) -> str:
    """The kernel's letter for what the process does (``T``: stopped, ``D``: uninterruptible); "" when it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0].decode()
    return ""


def sleeps_in(pid: int) -> str:
    """The kernel's function in which the first thread sleeps; "" when it runs, is gone, or may not be asked."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/wchan", "rb") as function:
        return function.read().decode().strip().lstrip("0")
    return ""


def is_alive(pid: int, began: int) -> bool:
    """Whether this very process (not a later one with its number) runs."""
    return start_time(pid) == began


def has_group(group: int) -> bool:
    """Whether a process of this group is left, be its leader gone."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def all_pids() -> list[int]:
    """Every process there is."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int, variable: str = "", value: str = "") -> set[int]:
    """Pids below ``root``, without it.

    With ``variable``: a process that carries another value of it than ``value``, and all below it, is left out (a
    gang's pod is started by the supervisor's pod and must outlive it).
    """
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", "rb") as stat:
            children.setdefault(int(stat.read().rpartition(b")")[2].split()[1]), []).append(pid)
    found: set[int] = set()
    todo = [root]
    while todo:
        new = [pid for pid in children.get(todo.pop(), []) if pid not in found]
        if variable:
            new = [pid for pid in new if _value(pid, variable) in ("", value)]
        found.update(new)
        todo += new
    return found


def is_above_another(root: int, variable: str, value: str) -> bool:
    """Whether a process below ``root`` carries another value of the variable."""
    return any(_value(pid, variable) not in ("", value) for pid in descendants(root))


def _value(pid: int, variable: str) -> str:
    """The variable's value in the process's environment; "" when it has none or is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
        _, found, rest = (b"\0" + environ.read()).partition(f"\0{variable}=".encode())
        return rest.partition(b"\0")[0].decode(errors="replace") if found else ""
    return ""


def carrying(variable: str, prefix: str, *, whole: bool = False) -> set[int]:
    """Pids whose environment holds ``variable`` with a value that starts with ``prefix``; never our own.

    ``whole``: the value must be ``prefix``.
    """
    needle = f"\0{variable}={prefix}".encode() + (b"\0" if whole else b"")
    found = set()
    for pid in all_pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
            if needle in b"\0" + environ.read():
                found.add(pid)
    return found - {os.getpid()}


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def reap(pid: int) -> None:
    """Collect a child's status, if it is our child and has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def kill_all(find: object) -> list[int]:
    """SIGKILL what ``find()`` returns until it returns nothing and all of it is gone; the pids that were ended.

    A process may fork between two looks, hence the loop; a killed parent cannot fork again, so it ends. Whoever is
    found by a parent is found no more when that is gone, and may take longer: memory is given back page by page.

    Raises:
        TimeoutError: nothing has gone for GONE_SECONDS (uninterruptible sleep). A thousand processes on a busy
            machine take longer than that, and go one after the other.
    """
    assert callable(find)
    ended: dict[int, int] = {}
    fewest, deadline = sys.maxsize, 0.0
    pause = 0.001
    while True:
        found = set(find())
        times = {pid: start_time(pid) for pid in found | ended.keys()}
        alive = {pid: at for pid, at in times.items() if at is not None and (pid in found or at == ended[pid])}
        if not alive:
            return sorted(ended)
        if len(alive) < fewest:
            fewest, deadline = len(alive), time.monotonic() + GONE_SECONDS
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(alive)} survive SIGKILL")
        for pid in alive:
            send(pid, signal.SIGKILL)
        ended |= alive
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
        for pid in alive:
            reap(pid)


def end_all(find: object) -> list[int] | None:
    """:func:`kill_all` for whoever tells how a pod ended: None when something survives, which is said and left."""
    try:
        return kill_all(find)
    except TimeoutError as error:
        print(f"argosy: {error}: the kernel, a driver or a file system holds them", file=sys.stderr, flush=True)
        return None
