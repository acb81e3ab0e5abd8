"""What is known of one running restart, and whether it is well. No input or output of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import ROOT_WAIT_SECONDS, Ending, Report
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import LOST_REASONS, PodState
from argosy.steps.verdict import PodFact, Verdict, judge

GATHER_SECONDS = 1.0
"""After the first sign of trouble the other pods have this long to say theirs."""
SILENT_SECONDS = 5.0
"""A pod that was silent for so long when its peers lost it is the one that is gone."""
_WEAK = (Cause.PEER_LOST, Cause.NCCL_TIMEOUT)
"""Verdicts that better evidence may still replace."""


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Seconds without a sign of life, and without a step (0: never), after which a restart is not well."""

    heartbeat: float
    hang: float


@dataclass
class _PodView:
    state: PodState
    seen: float
    phase: str = ""
    endings: dict[int, Ending] = field(default_factory=dict)
    error: dict[str, Any] | None = None

    @property
    def is_finished(self) -> bool:
        return self.error is None and (self.phase == "finished" or self.state.phase == "Succeeded")

    @property
    def has_failed(self) -> bool:
        bad = any(not ending.stopped and ending.exit_code != 0 for ending in self.endings.values())
        return bad or self.error is not None or self.phase == "failed" or self.state.phase == "Failed"


class Watch:
    """Feed it with what arrives, ask it what to think. Times are monotonic seconds."""

    def __init__(self, pods: Iterable[PodState], nproc: int, resume_step: int, now: float) -> None:
        """``pods`` of the restart, each with ``nproc`` ranks that go on from ``resume_step``."""
        self._pods = {pod.name: _PodView(pod, now) for pod in pods}
        self._nproc = nproc
        self._resume_step = resume_step
        self._progress_at = now
        self._steps: dict[int, int] = {}
        self._strange: list[str] = []
        self.corrupt_digests: set[str] = set()
        """Checkpoints that a pod found damaged."""

    def feed(self, report: Report, now: float) -> None:
        """A pod's report."""
        view = self._pods.get(report.pod)
        if view is None:
            return
        view.seen = now
        if view.phase != report.phase or report.events:
            self._progress_at = now
        view.phase = report.phase
        for raw in report.endings:
            ending = Ending.from_json(raw)
            if ending.rank not in view.endings:
                view.endings[ending.rank] = Ending.from_json({**raw, "pod": report.pod, "node": report.node})
            self._step(ending.rank, ending.last_step, now)
        if report.error is not None:
            view.error = {"pod": report.pod, "node": report.node, **report.error}
            if report.error.get("cause") == Cause.CHECKPOINT_CORRUPT and report.error.get("digest"):
                self.corrupt_digests.add(str(report.error["digest"]))
        for rank, step in report.furthest.items():
            self._step(int(rank), int(step), now)
        for record in report.steps:
            self._step(int(record.get("rank", 0)), int(record.get("step", 0)), now)

    def _step(self, rank: int, step: int, now: float) -> None:
        if step > self._steps.get(rank, self._resume_step):
            self._steps[rank] = step
            self._progress_at = now

    def see_pods(self, states: Iterable[PodState]) -> None:
        """The host's view of the pods."""
        for state in states:
            if state.name in self._pods:
                self._pods[state.name].state = state

    def see_strangeness(self, pod: str) -> None:
        """A pod asks for its next restart though this one was not stopped."""
        self._strange.append(pod)

    @property
    def step(self) -> int:
        """The newest step of any rank."""
        return max(self._steps.values(), default=self._resume_step)

    @property
    def steps_done(self) -> int:
        """How many steps the restart has done."""
        return self.step - self._resume_step

    @property
    def is_finished(self) -> bool:
        """Every pod's ranks ended well."""
        return all(view.is_finished for view in self._pods.values())

    def has_trouble(self, now: float, timeouts: Timeouts) -> bool:
        """Whether something failed, fell silent or hangs."""
        failed = any(view.has_failed for view in self._pods.values())
        return failed or bool(self._strange or self._silent(now, timeouts.heartbeat)) or self._hangs(now, timeouts)

    def _silent(self, now: float, seconds: float) -> list[_PodView]:
        alive = (view for view in self._pods.values() if not view.state.has_ended and not view.is_finished)
        return [view for view in alive if now - view.seen > seconds]

    def _hangs(self, now: float, timeouts: Timeouts) -> bool:
        running = all(view.phase == "running" or view.is_finished for view in self._pods.values())
        return running and not self.is_finished and 0 < timeouts.hang < now - self._progress_at

    def is_hang(self, now: float, timeouts: Timeouts) -> bool:
        """Whether the trouble is that nothing moves, and nothing else."""
        failed = any(view.has_failed for view in self._pods.values())
        return self._hangs(now, timeouts) and not failed and not self._silent(now, timeouts.heartbeat)

    def has_gathered(self, now: float, since: float, timeouts: Timeouts) -> bool:
        """Whether the evidence is all there, or waiting longer brings none; trouble began at ``since``."""
        waited = now - since
        if waited >= ROOT_WAIT_SECONDS or self.is_hang(now, timeouts):
            return True
        if all(self._has_spoken(view) for view in self._pods.values()):
            return True
        return waited >= GATHER_SECONDS and self.verdict(now, timeouts).cause not in _WEAK

    def _has_spoken(self, view: _PodView) -> bool:
        return view.state.has_ended or view.is_finished or len(view.endings) >= self._nproc or view.error is not None

    def verdict(self, now: float, timeouts: Timeouts) -> Verdict:
        """The judge's word on what is known now."""
        endings = [ending for view in self._pods.values() for ending in view.endings.values()]
        found = judge(endings, self._errors(now, timeouts), self._facts(now, timeouts.heartbeat))
        if found.cause == Cause.PEER_LOST and self._silent(now, SILENT_SECONDS):
            # Silence alone decides nothing so early, but here the peers say the same.
            found = judge(endings, self._errors(now, timeouts), self._facts(now, SILENT_SECONDS))
        return found

    def _facts(self, now: float, silence: float) -> list[PodFact]:
        silent = {view.state.name: now - view.seen for view in self._silent(now, silence)}
        return [self._fact(view.state, silent.get(view.state.name)) for view in self._pods.values()]

    @staticmethod
    def _fact(state: PodState, silent: float | None) -> PodFact:
        gone = silent is not None and not state.reason
        reason = state.reason if state.reason not in LOST_REASONS else "NodeLost"
        return PodFact(
            name=state.name,
            node=state.node,
            phase=state.phase,
            reason="NodeLost" if gone else reason,
            message=f"no heartbeat for {silent:.0f} s" if gone else state.message,
            exit_code=state.exit_code,
            signal=state.signal,
            time=state.time,
        )

    def _errors(self, now: float, timeouts: Timeouts) -> list[dict[str, Any]]:
        errors = [view.error for view in self._pods.values() if view.error is not None]
        errors += [self._unexplained(view.state) for view in self._pods.values() if self._is_unexplained(view)]
        for pod in self._strange:
            quote = f"pod {pod} left its restart without a word"
            errors.append({"cause": "unknown", "quote": quote, "pod": pod, "node": self._pods[pod].state.node})
        if self.is_hang(now, timeouts):
            errors.append(self._hang(now))
        return errors

    @staticmethod
    def _is_unexplained(view: _PodView) -> bool:
        return view.state.phase == "Failed" and not view.endings and view.error is None and not view.state.reason

    @staticmethod
    def _unexplained(state: PodState) -> dict[str, Any]:
        how = f"signal {state.signal}" if state.signal is not None else f"exit code {state.exit_code}"
        if state.exit_code == ExitCode.USAGE:
            # launch refused its arguments; it would refuse them again.
            quote = f"pod {state.name} on {state.node} refused its arguments (exit code 2): see its log"
            return {"cause": "launcher_usage", "quote": quote, "pod": state.name, "node": state.node}
        code = {"code": state.exit_code} if state.exit_code in set(ExitCode) else {}
        quote = f"pod {state.name} on {state.node} ended with {how} and reported nothing"
        return {"cause": "unknown", "quote": quote, "pod": state.name, "node": state.node, "time": state.time, **code}

    def _hang(self, now: float) -> dict[str, Any]:
        quote = f"no rank made a step for {now - self._progress_at:.0f} s; the last was step {self.step}"
        error: dict[str, Any] = {"cause": "hang", "quote": quote, "step": self.step}
        ranks = {rank: self._steps.get(rank, self._resume_step) for rank in range(len(self._pods) * self._nproc)}
        behind = [rank for rank, step in ranks.items() if step == min(ranks.values())]
        if len(behind) == 1 and len(ranks) > 1:
            by_index = {view.state.index: view.state for view in self._pods.values()}
            state = by_index[behind[0] // self._nproc]
            error |= {"rank": behind[0], "pod": state.name, "node": state.node}
        return error

    def endings(self) -> list[Ending]:
        """Every rank's end that was reported."""
        return [ending for view in self._pods.values() for ending in view.endings.values()]


def alive(states: Iterable[PodState]) -> Mapping[str, PodState]:
    """Pods that still run, by name."""
    return {state.name: state for state in states if not state.has_ended and state.reason not in LOST_REASONS}
