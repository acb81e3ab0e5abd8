"""What is known of one running restart, and whether it is well. No input or output of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import REPORT_SECONDS, ROOT_WAIT_SECONDS, Ending, Report
from argosy.steps.contract.trait import Trait
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import LOST_REASONS, PodState
from argosy.steps.supervisor.losses import Losses
from argosy.steps.supervisor.pace import FLOOR_SECONDS, Pace
from argosy.steps.supervisor.pod_view import PodView, holder, uncommitted
from argosy.steps.supervisor.slowness import Slowness, SlowRank
from argosy.steps.verdict import PodFact, Verdict, judge
from argosy.steps.verdict.evidence import read_lines
from argosy.steps.verdict.standing import one_apart, where_all_stand

STACKS_SECONDS = 3.0
"""After a hang was seen, ranks have so long to print their stacks and end."""
GATHER_SECONDS = 1.0
"""After the first sign of trouble the other pods have this long to say theirs."""
SILENT_SECONDS = 5.0
"""A pod that was silent for so long when its peers lost it is the one that is gone."""


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """Seconds without a sign of life, and without a step (0: never), after which a restart is not well."""

    heartbeat: float
    hang: float
    act_on_stall: bool = False
    """Whether a pause that is longer than the run's own explain is a hang."""


class Watch:
    """Feed it with what arrives, ask it what to think. Times are monotonic seconds."""

    def __init__(
        self,
        pods: Iterable[PodState],
        nproc: int,
        resume_step: int,
        now: float,
        pace: Pace | None = None,
        nan_losses: int = 0,
        saves: Iterable[int] = (),
    ) -> None:
        """``pods`` of the restart, each with ``nproc`` ranks that go on from ``resume_step``; ``pace`` of the run;
        ``nan_losses`` in a row are trouble, 0: never; ``saves``: steps of what it committed before we came."""
        self._pace, self._stalled = Pace() if pace is None else pace, False
        self._pods = {pod.name: PodView(pod, now) for pod in pods}
        self._nproc, self._resume_step = nproc, resume_step
        self._progress_at = self._advanced_at = self._began = now
        self._advanced_told: float | None = None
        self._first: dict[int, int] = {}
        self._steps: dict[int, int] = {}
        self._saves = [*saves]
        self._losses = Losses(nan_losses)
        self._slowness = Slowness(len(self._pods) * nproc)
        self._slow: list[SlowRank] = []
        self._moved_away: Trouble | None = None
        self._strange: list[str] = []
        self._hung: tuple[float, str] | None = None
        """When it was seen that nothing moves, and how that is said."""
        self.corrupt_digests: set[str] = set()
        """Checkpoints that a pod found damaged."""

    def ran(self, now: float) -> float:
        """Seconds since the restart began."""
        return now - self._began

    def feed(self, report: Report, now: float) -> None:
        """Take note of a pod's report."""
        view = self._pods.get(report.pod)
        if view is None:
            return
        view.seen = now
        if view.phase != report.phase or report.events:
            self._moved(now)
        view.phase = report.phase
        view.uncommitted, view.end = report.uncommitted, report.end
        for ending in report.endings:
            if ending.rank not in view.endings:
                view.endings[ending.rank] = replace(ending, pod=report.pod, node=report.node)
            self._step(ending.rank, ending.last_step, now)
        if report.error is not None:
            error = report.error  # one without a pod speaks of the gang, and may name another node
            view.error = replace(error, pod=report.pod, node=report.node) if error.pod else error
            if report.error.cause == Cause.CHECKPOINT_CORRUPT and report.error.digest:
                self.corrupt_digests.add(report.error.digest)
        self._saves += report.saved_steps()
        for record in report.steps:
            self._step(int(record.get("rank", 0)), int(record.get("step", 0)), now, record.get("time"))
            self._losses.feed(record)
            self._slow += self._slowness.step(record, now)
        for rank, step in report.furthest.items():
            self._step(int(rank), int(step), now)
        for told in report.worked:
            self._slow += self._slowness.worked(int(told["rank"]), told["steps"], now)

    def _step(self, rank: int, step: int, now: float, at: float | None = None) -> None:
        # A script may count otherwise than its checkpoints are called: any other step is movement.
        if step > 0 and step != self._steps.get(rank):
            self._first[rank] = min(step, self._first.get(rank, step))
            before = self._steps.get(rank, 0)
            # The first rank that speaks teaches for all: a thousand of them would have said enough in one step.
            if rank == next(iter(self._steps), rank) and before < step:
                if before:  # to the first step it takes as long as imports and rendezvous do
                    self._pace.paused(self._pause(now, at))
                self._advanced_at, self._advanced_told = now, at
            self._steps[rank] = step
            self._moved(now)

    def _pause(self, now: float, at: float | None) -> float:
        """Since the step before, by the rank's own clock: a report brings all steps of half a second at once."""
        heard = now - self._advanced_at
        if at is None or self._advanced_told is None:
            return heard
        return max(0.0, at - self._advanced_told, heard - REPORT_SECONDS)

    def _moved(self, now: float) -> None:
        self._progress_at, self._stalled = now, False

    def excuse(self, now: float) -> None:
        """What stands still until now has a reason."""
        self._progress_at = now

    def stall(self, now: float) -> tuple[float, float] | None:
        """Seconds without a step and the longest such pause before, told once when it is longer than that explains."""
        waited = now - self._progress_at
        if self._stalled or self.is_finished or waited <= self._stall_limit():
            return None
        self._stalled = True
        return waited, self._pace.longest

    def slow(self) -> list[tuple[SlowRank, PodState]]:
        """Ranks that the others wait for in every step, with their pods; each is told once."""
        told, self._slow = self._slow, []
        by_index = {view.state.index: view.state for view in self._pods.values()}
        return [(each, by_index[each.rank // self._nproc]) for each in told]

    def move_away(self, trouble: Trouble) -> None:
        """End the restart for a slow rank."""
        self._moved_away = trouble

    def _stall_limit(self) -> float:
        # Imports, rendezvous and what is restored lie before the first step: the pace of steps says nothing of them.
        return self._pace.limit if self._steps else max(self._pace.limit, FLOOR_SECONDS)

    def see_pods(self, states: Iterable[PodState]) -> None:
        """Take note of the host's view of the pods."""
        for state in states:
            if state.name in self._pods:
                self._pods[state.name].state = state

    def see_strangeness(self, pod: str) -> None:
        """A pod asks for its next restart though this one was not stopped."""
        self._strange.append(pod)

    @property
    def step(self) -> int:
        """The newest step of any rank; where nobody reads a script's steps, that of its newest save."""
        return max(self._steps.values(), default=max(self._resume_step, *self._saves, 0))

    @property
    def steps_done(self) -> int:
        """How many steps the restart has done; where nobody reads a script's steps, one for each of its saves."""
        return max((1 + step - self._first[rank] for rank, step in self._steps.items()), default=len(self._saves))

    @property
    def unread(self) -> bool:
        """Whether nobody knows a step, neither of what the script printed nor of what its saves are called."""
        return not self._steps and not any(self._saves)

    @property
    def uncommitted(self) -> tuple[str, ...]:
        """What nodes hold of the checkpoint's files that nobody commits, in words."""
        return tuple(f"{view.state.node} holds {view.uncommitted}" for view in uncommitted(self._pods.values()))

    @property
    def holder(self) -> int:
        """The node rank that has yet to commit the end, where that is one which a supervisor has to name, or -1."""
        return holder(self._pods.values())

    @property
    def is_finished(self) -> bool:
        """Every pod's ranks ended well, and the end is committed where a node holds it."""
        return all(view.is_finished for view in self._pods.values()) and self.holder < 0

    def has_trouble(self, now: float, timeouts: Timeouts) -> bool:
        """Whether something failed, fell silent or hangs."""
        failed = any(view.has_failed for view in self._pods.values())
        wrong = bool(self._hung or self._strange or self._silent(now, timeouts.heartbeat) or self._losses.trouble())
        return failed or wrong or self._moved_away is not None or self._hangs(now, timeouts)

    def _silent(self, now: float, seconds: float) -> list[PodView]:
        awaited = self.holder  # who has finished has nothing to say but that the end which it alone holds is committed
        there = (view for view in self._pods.values() if not view.is_finished or view.state.index == awaited)
        return [view for view in there if not view.state.has_ended and now - view.seen > seconds]

    def _hangs(self, now: float, timeouts: Timeouts) -> bool:
        running = all(view.phase == "running" or view.is_finished for view in self._pods.values())
        limit = min(timeouts.hang or math.inf, self._stall_limit() if timeouts.act_on_stall else math.inf)
        return running and not self.is_finished and now - self._progress_at > limit

    def is_hang(self, now: float, timeouts: Timeouts) -> bool:
        """Whether the trouble is that nothing moves, and nothing else."""
        if self._hung is not None:
            return True
        failed = any(view.has_failed for view in self._pods.values())
        return self._hangs(now, timeouts) and not failed and not self._silent(now, timeouts.heartbeat)

    def see_hang(self, now: float) -> None:
        """It is one: from now on the ranks end because they are asked where they stand."""
        if self._hung is None:
            self._pace.paused(now - self._progress_at)  # should it be a false alarm, the next one comes later
            quote = f"no rank made a step for {now - self._progress_at:.0f} s; the last was step {self.step}"
            if not self._steps:
                what = f"{'further save' if self._saves else 'first step'} within {now - self._progress_at:.0f} s"
                quote = f"no {what}, and no step was told or read of what it printed (progress_pattern)"
            self._hung = (now, quote)

    def has_gathered(self, now: float, since: float, timeouts: Timeouts) -> bool:
        """Whether the evidence is all there, or waiting longer brings none; trouble began at ``since``."""
        waited = now - since
        if self._hung is not None and now - self._hung[0] < STACKS_SECONDS:
            return all(len(view.endings) >= self._nproc for view in self._pods.values())
        if waited >= ROOT_WAIT_SECONDS or self._hung is not None:
            return True
        if all(view.has_spoken(self._nproc) for view in self._pods.values()):
            return True
        return waited >= GATHER_SECONDS and Trait.PROVISIONAL not in self.verdict(now, timeouts).cause.traits

    def verdict(self, now: float, timeouts: Timeouts) -> Verdict:
        """The judge's word on what is known now."""
        endings = self.endings()
        if self._hung is not None:
            # All were asked for their stacks: Open MPI ends the peers of one that gave its own, without a word.
            endings = [replace(each, stopped=each.stopped or not read_lines(each.tail)) for each in endings]
        found = judge(endings, self._errors(), self._facts(now, timeouts.heartbeat))
        if found.cause == Cause.NUMERICS_NAN and (wrong := self._losses.trouble()) is not None:
            return replace(found, step=wrong.step, since=wrong.time)
        if found.cause in (Cause.PEER_LOST, Cause.NCCL_NETWORK_INIT) and self._silent(now, SILENT_SECONDS):
            # Silence alone decides nothing so early, but here the peers say the same.
            found = judge(endings, self._errors(), self._facts(now, SILENT_SECONDS))
        return found

    def _facts(self, now: float, silence: float) -> list[PodFact]:
        silent = {view.state.name: now - view.seen for view in self._silent(now, silence)}
        return [view.fact(silent.get(view.state.name)) for view in self._pods.values()]

    def _errors(self) -> list[Trouble]:
        errors = [view.error for view in self._pods.values() if view.error is not None]
        errors += [view.unexplained() for view in self._pods.values() if view.is_unexplained]
        for pod in self._strange:
            quote = f"pod {pod} left its restart without a word"
            errors.append(Trouble(cause=Cause.UNKNOWN, quote=quote, pod=pod, node=self._pods[pod].state.node))
        if self._hung is not None:
            errors.append(self._hang(self._hung[1]))
        return [*errors, *filter(None, (self._losses.trouble(), self._moved_away))]

    def _hang(self, quote: str) -> Trouble:
        error = Trouble(cause=Cause.HANG, quote=quote, step=self.step)
        if (found := self._apart()) is None:
            return replace(error, quote=quote + where_all_stand(self.endings()))
        rank, text = found
        by_index = {view.state.index: view.state for view in self._pods.values()}
        state = by_index[rank // self._nproc]
        quote += f"; rank {rank} on {state.node} {text}"
        return replace(error, quote=quote, rank=rank, pod=state.name, node=state.node)

    def _apart(self) -> tuple[int, str] | None:
        """The rank that the others wait for, and what is known of it: by the stacks, else by the steps."""
        world = range(len(self._pods) * self._nproc)
        endings = self.endings()
        if (found := one_apart(endings)) is not None:
            return found.rank, found.text
        mute = set(world) - {ending.rank for ending in endings}
        if endings and len(mute) == 1:
            return mute.pop(), "did not end when it was asked for its stack"
        least = min(self._steps.get(each, -1) for each in world)
        behind = [rank for rank in world if self._steps.get(rank, -1) == least]
        # Of two ranks one may be mute because only the other prints.
        if len(behind) == 1 < len(world) and (behind[0] in self._steps or len(world) > 2):
            return behind[0], f"is behind the others, at step {self._steps.get(behind[0], self._resume_step)}"
        return None

    def endings(self) -> list[Ending]:
        """Every rank's end that was reported."""
        return [ending for view in self._pods.values() for ending in view.endings.values()]


def alive(states: Iterable[PodState]) -> Mapping[str, PodState]:
    """Pods that still run, by name."""
    return {state.name: state for state in states if not state.has_ended and state.reason not in LOST_REASONS}
