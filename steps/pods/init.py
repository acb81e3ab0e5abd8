"""First process of a pod: starts the main process, outlives nobody. Run as ``python -I -S init.py < SPEC``.

It adopts every orphan below it (a rank started in a session of its own is still the pod's), ends all of
them when the main process ends or when the engine is gone (end of file on the lifeline), and then writes
``ending.json``. Standard library only, and few modules: it starts for every pod.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import processes  # type: ignore[import-not-found]  # a sibling, not the package: starts faster

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_LOOKS = 50
"""At all processes, in which nothing is found though there are children; one of another user may never be seen."""


def _write(path: str, record: dict[str, object]) -> None:
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as target:
        json.dump(record, target)
        target.flush()
        os.fsync(target.fileno())
    os.replace(part, path)


def _exec_main(spec: dict[str, object], log: int, parent: int) -> None:
    """In the child: never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.setpgid(0, 0)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        environ = dict(spec["env"])  # type: ignore[call-overload]
        command = list(spec["command"])  # type: ignore[call-overload]
        if spec["isolate"]:
            import isolation  # type: ignore[import-not-found]

            mounts, visible, read_only = spec["mounts"], spec["visible"], spec["read_only"]
            isolation.enter(str(spec["root"]), dict(mounts), list(visible), list(read_only))  # type: ignore[call-overload]
        if spec["workdir"]:
            os.makedirs(str(spec["workdir"]), exist_ok=True)
            os.chdir(str(spec["workdir"]))
        # Last, for a change of credentials takes it back: nobody is left to end a pod whose first process was killed.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + int(signal.SIGKILL))
        os.execvpe(command[0], command, environ)
    except FileNotFoundError as error:
        os.write(2, f"argosy: cannot start {spec['command']}: {error.strerror}: {error.filename}\n".encode())
        os._exit(127)
    except BaseException as error:
        os.write(2, f"argosy: cannot start {spec['command']}: {error}\n".encode())
        os._exit(126)


class _Init:
    def __init__(self, spec: dict[str, object]) -> None:
        self.spec = spec
        self.folder = str(spec["folder"])
        self.lifeline = spec["lifeline"]
        self.main = -1
        self.status: int | None = None

    def start(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        forwarded = (signal.SIGTERM, signal.SIGINT)
        # One that comes early waits for whom to forward it to. The child lets it in when it has no handler of ours:
        # what that notes before Python is done with the fork, Python drops.
        signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
        for number in forwarded:
            signal.signal(number, self._forward)
        log = os.open(str(self.spec["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        parent = os.getpid()
        self.main = os.fork()
        if self.main == 0:
            _exec_main(self.spec, log, parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
        os.close(log)
        record = {
            "pid": os.getpid(),
            "start_time": processes.start_time(os.getpid()),
            "main": self.main,
            "main_start_time": processes.start_time(self.main),
            "token": self.spec["token"],
        }
        _write(f"{self.folder}/process.json", record)

    def _forward(self, number: int, _frame: object) -> None:
        if self.status is None:
            processes.send(self.main, number)

    def wait(self) -> None:
        watched = [self.woken] + ([int(str(self.lifeline))] if self.lifeline is not None else [])
        while self.status is None:
            ready, _, _ = select.select(watched, [], [])
            if self.lifeline in ready:
                break
            os.read(self.woken, 4096)
            self._reap()

    def _reap(self) -> bool:
        """Whether children are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.main:
                self.status = status

    def end(self) -> None:
        lost = self.status is None
        ended = time.time()
        code = -signal.SIGKILL if self.status is None else os.waitstatus_to_exitcode(self.status)
        # Who adopts every orphan and has no child has nobody below it; else all processes of the machine are looked at.
        # One that forks meanwhile may be missed by a look, and is seen by a later one; pods of a gang are left.
        own = os.getpid(), str(self.spec["token_name"]), str(self.spec["token"])
        unseen = 0
        while self._reap() and unseen < _LOOKS:
            killed = processes.end_all(lambda: processes.descendants(*own))
            if killed is None:
                break
            unseen = 0 if killed else unseen + 1
            if unseen and processes.is_above_another(*own):
                break
        _write(
            f"{self.folder}/ending.json",
            {
                "exit_code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "time": ended,
                "engine_lost": lost,
            },
        )


def main() -> None:
    """Run the pod of the specification on standard input."""
    init = _Init(json.load(sys.stdin))
    init.start()
    init.wait()
    init.end()


if __name__ == "__main__":
    main()
