"""The rank shim: ``python -m argosy.steps.launch.rank -- COMMAND...``, started by torchrun in the rank's place.

It starts the real rank, sees how it ends and what it said, and tells launch; a rank that ended badly is held back
until launch lets it go, so that torchrun does not end the others before the culprit's evidence is in.
Standard library only: it starts with every rank.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.contract import env as names
from argosy.steps.contract.injection import CANNOT_EXIT
from argosy.steps.contract.trouble import ASKED_FOR_STACKS
from argosy.steps.evidence.cgroup import oom_kills
from argosy.steps.launch.forked import Forked
from argosy.steps.launch.progress_lines import ProgressLines
from argosy.steps.launch.rank_child import RankChild, start_rank
from argosy.steps.launch.rank_output import RankOutput, write_all
from argosy.steps.launch.wire import LineBuffer, ShimSettings, connect, decode, encode
from argosy.steps.pods import processes

if TYPE_CHECKING:
    from argosy.steps.launch.rank_faults import RankFault

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DRAIN_SECONDS = 0.5
"""How long output of the ended rank is still read when a process it left holds the pipe open."""
_LATE_SECONDS = 0.1
"""Of silence, after a failure: the gang stands still until it is told, and loaders of data print nothing more."""
_PHASE_SECONDS = 0.002
"""A small checkpoint is written in ten times that."""
_QUIET_SECONDS = 2.0
_READ = 1 << 16
_SHELL_SIGNAL_BASE = 128


class Shim:
    """The parent process of one rank."""

    def __init__(self, settings: ShimSettings, command: Sequence[str]) -> None:
        self._settings = settings
        self._command = command
        self._rank = int(os.environ.get("RANK", "0"))
        self._output = RankOutput(self._rank, Path(settings.folder))
        self._lines = ProgressLines(settings.progress_pattern, settings.resume_step)
        self._progress = LineBuffer()
        self._news = LineBuffer()
        self._speaks = False
        """The rank reports its steps itself, so its printed lines are not read for them."""
        self._stopped = False
        self._state = self._sleeps_in = ""
        self._released = False
        self._alone = False
        """launch is gone."""
        self._last_step = 0
        self._socket = connect(Path(settings.folder))
        self._fault = _fault(settings.fault, self._rank)
        self._oom_kills = oom_kills()
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Run the rank to its end; the exit code torchrun sees."""
        wake, child = self._start()
        for source, reader in (
            (child.output, self._read_output),
            (child.progress, self._read_progress),
            (self._socket.fileno(), self._read_socket),
            (wake, lambda: _drain(wake)),
        ):
            self._selector.register(source, selectors.EVENT_READ, reader)
        if isinstance(child.process, Forked):
            self._selector.register(child.process, selectors.EVENT_READ, child.process.poll)
        began = time.monotonic()
        while child.process.poll() is None:
            if not self._turn(self._until_fault(began)):
                self._sleeps_in = processes.sleeps_in(child.process.pid)
        ended, code = time.time(), child.process.wait()
        if code == -signal.SIGKILL and (killed := oom_kills() - self._oom_kills) > 0:
            self._output.say(f"argosy: the pod's control group counts oom_kill {killed} since this rank was started")
        self._finish_reading(child, failed=code != 0)
        return self._end(code, ended)

    def _start(self) -> tuple[int, RankChild]:
        wake, end = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(end, False)
        signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        environ = dict(os.environ)
        if self._fault is not None:
            environ.update(self._fault.environment())
        child = start_rank(self._command, environ, self._settings.ranks_from)
        self._child = child
        self._tell({"type": "started", "pid": child.process.pid})
        for number in _FORWARDED:
            signal.signal(number, self._forward)
        return wake, child

    def _forward(self, number: int, _frame: object) -> None:
        # mpirun ends the others, us too, within a millisecond of a rank's own death: that one was not stopped.
        if processes.is_running(self._child.process.pid):
            self._stopped = True
            self._signal(number)

    def _signal(self, number: int, pid: int | None = None) -> None:
        """To the rank, or to ``pid`` below it; to nobody once the rank has ended."""
        if self._child.process.returncode is None:
            processes.send(self._child.process.pid if pid is None else pid, number)

    def _turn(self, timeout: float | None) -> bool:
        ready = self._selector.select(timeout)
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _finish_reading(self, child: RankChild, *, failed: bool) -> None:
        deadline = time.monotonic() + _DRAIN_SECONDS
        while {child.output, child.progress} & set(self._selector.get_map()) and time.monotonic() < deadline:
            if self._turn(0.02):
                continue
            if not processes.has_group(child.process.pid) or (failed and not self._turn(_LATE_SECONDS)):
                break
        for line in self._output.finish():
            self._printed(line)

    def _read_output(self) -> None:
        data = self._read(self._child.output)
        for line in self._output.feed(data):
            self._printed(line)
        if bar := self._output.redrawn():
            self._printed(bar)

    def _read_progress(self) -> None:
        for raw in self._progress.feed(self._read(self._child.progress)):
            record = decode(raw)
            if record is None:
                continue
            if record.get("type") == "entered":
                if self._fault is not None and self._fault.phase == record["phase"]:
                    self._inject(self._fault)
            elif record.get("type") == "step":
                if not self._speaks:
                    self._speaks = record["anew"] = True  # what was printed before may have counted otherwise
                self._step(record)
            else:
                self._tell(record)

    def _read(self, handle: int) -> bytes:
        try:
            data = os.read(handle, _READ)
        except BlockingIOError:
            return b""
        if not data:
            self._selector.unregister(handle)
        return data

    def _printed(self, line: str) -> None:
        if not self._speaks and (found := self._lines.read(line)):
            self._step({"type": "step", **found, "time": time.time()})

    def _step(self, record: dict[str, Any]) -> None:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            self._last_step = max(0 if record.get("anew") else self._last_step, int(record["step"]))
        self._tell(record)
        last = self._fault is not None and self._fault.phase == "end" and int(record.get("end_step") or 0) > 0
        if self._fault is not None and (
            self._fault.is_due(self._last_step) or (last and self._last_step >= int(record["end_step"]))
        ):
            self._inject(self._fault)

    def _until_fault(self, began: float) -> float:
        """Seconds until the next look: for a fault that goes by time or phase, or at a rank that is quiet."""
        if self._fault is not None and self._fault.phase and self._fault.is_seen(self._child.process.pid):
            self._inject(self._fault)
        if self._fault is None or not (self._fault.seconds or self._fault.phase):
            return _QUIET_SECONDS
        if self._fault.phase:
            return _PHASE_SECONDS
        left = began + self._fault.seconds - time.monotonic()
        if left <= 0:
            self._inject(self._fault)
        return min(max(0.0, left), _QUIET_SECONDS)

    def _inject(self, fault: RankFault) -> None:
        if fault.needs_the_rank and not self._speaks:
            text = f"{CANNOT_EXIT} in rank {self._rank}: its script does not call argosy.report; inject kill instead"
            self._tell({"type": "failure", "cause": "launcher_usage", "message": text})
        else:
            self._tell({"type": "injected", "fault": fault.name, "step": self._last_step, "phase": fault.phase})
        self._fault = None
        if fault.signal is not None:
            self._signal(fault.signal, fault.victim(self._child.process.pid))

    def _read_socket(self) -> None:
        try:
            data = self._socket.recv(_READ)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._socket.fileno())
            self._alone = True
            self._stopped = True
            self._signal(signal.SIGKILL)
        for raw in self._news.feed(data):
            record = decode(raw) or {}
            kind = record.get("type")
            if kind == "gang_step":
                self._gang_step(int(record["step"]))
            elif kind == "release":
                self._released = True
            elif kind == "stacks":
                self._print_stacks()

    def _gang_step(self, step: int) -> None:
        # A plain script prints its steps on rank 0 only; the others' faults go by the gang's step.
        if self._fault is not None and self._last_step == 0 and self._fault.is_due(step):
            self._last_step = step
            self._inject(self._fault)

    def _print_stacks(self) -> None:
        # PYTHONFAULTHANDLER prints every thread's stack on SIGABRT; a stopped process first has to go on.
        self._stopped = True
        self._state = processes.state(self._child.process.pid)
        # A peer that was asked first has ended, and may have woken it.
        self._sleeps_in = processes.sleeps_in(self._child.process.pid) or self._sleeps_in
        self._output.say(ASKED_FOR_STACKS)
        self._signal(signal.SIGABRT)
        self._signal(signal.SIGCONT)

    def _tell(self, record: dict[str, Any]) -> None:
        if not self._alone:
            with contextlib.suppress(OSError):
                self._socket.sendall(encode({**record, "rank": self._rank}))

    def _end(self, code: int, ended: float) -> int:
        if self._fault is not None and code == 0:
            text = f"injection {self._fault.name} did not happen: rank {self._rank} ended at step {self._last_step}"
            self._tell({"type": "note", "message": text})
        ending = {
            "rank": self._rank,
            "time": ended,
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "stopped": self._stopped,
            "tail": list(self._output.tail),
            "last_step": self._last_step,
            "state": self._state,
            "sleeps_in": self._sleeps_in,
            "pod": self._settings.pod,
            "node": self._settings.node,
        }
        self._tell({"type": "ending", "ending": ending})
        deadline = time.monotonic() + self._settings.root_wait_seconds
        while code != 0 and not (self._released or self._stopped or self._alone) and time.monotonic() < deadline:
            self._turn(deadline - time.monotonic())
        return code if code >= 0 else _SHELL_SIGNAL_BASE - code


def _fault(told: dict[str, Any] | None, rank: int) -> RankFault | None:
    if told is None:
        return None
    # Imported here: a rank without a fault starts without it.
    from argosy.steps.launch.rank_faults import RankFault

    return RankFault.of(told, rank)


def _drain(handle: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(handle, _READ)


def main() -> int:
    """Run the command after ``--``."""
    command = sys.argv[sys.argv.index("--") + 1 :]
    shim = Shim(ShimSettings.from_environment(), command)
    try:
        return shim.run()
    except OSError as error:
        write_all(2, f"argosy: launcher_usage: cannot start {command[0]}: {error.strerror}\n".encode())
        return 127


if __name__ == "__main__":
    os.environ.pop(names.FAULT, None)
    sys.exit(main())
