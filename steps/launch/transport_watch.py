"""Reads NCCL's log while the ranks run, and tells the supervisor which transport they really use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.transport import ExpectedTransport
from argosy.steps.launch.nccl_logs import NcclLogs, choose_logs
from argosy.steps.launch.reporter import Reporter
from argosy.steps.nccl.effective import Variable
from argosy.steps.nccl.observed import Observer
from argosy.steps.nccl.transport import TransportVerdict, describe, judge_transport

LOOK_SECONDS: Final = 0.5
SLOWEST_SECONDS: Final = 30.0
"""Between looks when the log is still: a communicator that is made late is noticed, and nothing is spent on it."""
FIRST_STEPS: Final = 2
"""After so many steps the collectives have opened their channels: what is not known then is said to be unknown."""
MOST_TOLD: Final = 5


class TransportWatch:
    """Reads NCCL's log of one restart on this node and judges the network that is used."""

    def __init__(
        self, expected: ExpectedTransport, enforce: bool, assignment: Assignment, logs: NcclLogs, reporter: Reporter
    ) -> None:
        """``enforce``: a wrong transport ends the run."""
        self._expected = expected
        self._enforce = enforce
        self._assignment = assignment
        self._logs = logs
        self._reporter = reporter
        self._observer = Observer()
        self._warned = 0
        self._before: TransportVerdict | None = None
        self._told: list[TransportVerdict] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="transport", daemon=True)

    @property
    def profile(self) -> str:
        """Name of the fabric profile that is expected."""
        return self._expected.profile

    def start(self) -> None:
        """Begin to read: the ranks are being started."""
        self._thread.start()

    def close(self) -> None:
        """The ranks have ended: one last look, and an unknown transport is said to be so. Again: nothing."""
        if self._closing.is_set() or not self._thread.is_alive():
            return
        self._closing.set()
        self._thread.join()
        self._look()
        self._tell(self._judge())

    def _serve(self) -> None:
        pause = LOOK_SECONDS
        while not self._closing.wait(pause):
            stepped = self._reporter.gang_step() >= self._assignment.resume_step + FIRST_STEPS
            still = not self._look()
            pause = min(SLOWEST_SECONDS, pause * 2) if still and self._told else LOOK_SECONDS
            verdict, before = self._judge(), self._before
            self._before = verdict
            if verdict == before and (verdict.state != "unknown" or stepped):
                self._tell(verdict)

    def _look(self) -> bool:
        """Read what NCCL wrote since the last look; whether there was anything."""
        before = self._observer.seen.lines
        for lines in self._logs.new_lines():
            self._observer.feed(lines)
        warnings = self._observer.seen.warnings
        for text in warnings[self._warned :] if self._logs.owned else ():
            print(f"[nccl] {text}", flush=True)
        self._warned = len(warnings)
        return self._observer.seen.lines > before

    def _judge(self) -> TransportVerdict:
        if self._logs.why:
            return TransportVerdict("unknown", describe(self._expected, self._assignment.nnodes), self._logs.why)
        return judge_transport(self._expected, self._observer.seen, self._assignment.nnodes)

    def _tell(self, verdict: TransportVerdict) -> None:
        if (self._told and verdict == self._told[-1]) or len(self._told) >= MOST_TOLD:
            return
        self._told.append(verdict)
        wrong = verdict.state == "wrong"
        head = "warning: transport: " if wrong else "transport: "
        tail = f" {verdict.remedy}" if wrong and verdict.remedy else ""
        print(f"argosy: {head}{verdict.sentence}.{tail}", file=sys.stderr if wrong else sys.stdout, flush=True)
        self._reporter.event(
            "transport",
            attempt=self._assignment.attempt,
            restart=self._assignment.restart,
            node=self._reporter.node,
            state=verdict.state,
            sentence=verdict.sentence,
            remedy=verdict.remedy,
            profile=self._expected.profile,
        )
        if wrong and self._enforce:
            text = f"{verdict.sentence} (gang.transport = enforce)"
            self._reporter.fail(StepError(Cause.NCCL_NETWORK_INIT, text, quote=text))


def transport_watch(
    args: LaunchArgs,
    assignment: Assignment,
    effective: Sequence[Variable],
    places: tuple[Path, Path],
    environ: dict[str, str],
    reporter: Reporter,
) -> TransportWatch | None:
    """The watch, or None when no transport is expected; what it needs is added to the ranks' ``environ``.

    ``places``: the folder of the ranks' logs, and their working directory.

    Raises:
        InputError: ``expected_transport`` cannot be read.
    """
    if not args.expected_transport or args.transport == "off":
        return None
    expected = ExpectedTransport.from_json(args.expected_transport)
    logs = choose_logs(effective, *places)
    environ.update(logs.variables)
    if logs.variables:
        set_here = ", ".join(f"{name}={value}" for name, value in logs.variables.items())
        print(f"argosy: transport: {set_here} (to compare with the fabric {expected.profile}; set one and it stays)")
    return TransportWatch(expected, args.transport == "enforce", assignment, logs, reporter)
