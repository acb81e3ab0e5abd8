"""What the supervisor knows of one pod of a restart: the host's word and the pod's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import LOST_REASONS, PodState
from argosy.steps.verdict import PodFact, judge


@dataclass
class PodView:
    """One pod; ``seen`` are monotonic seconds."""

    state: PodState
    seen: float
    phase: str = ""
    endings: dict[int, Ending] = field(default_factory=dict)
    error: Trouble | None = None
    uncommitted: str = ""
    end: str = ""

    @property
    def is_finished(self) -> bool:
        """Its ranks ended well."""
        return self.error is None and (self.phase == "finished" or self.state.phase == "Succeeded")

    @property
    def has_failed(self) -> bool:
        """A rank of it or the pod itself ended badly."""
        bad = any(not ending.stopped and ending.exit_code != 0 for ending in self.endings.values())
        return bad or self.error is not None or self.phase == "failed" or self.state.phase == "Failed"

    @property
    def is_unexplained(self) -> bool:
        """It failed, and neither it nor the host says why."""
        return self.state.phase == "Failed" and not self.endings and self.error is None and not self.state.reason

    def has_spoken(self, nproc: int) -> bool:
        """Whether waiting brings no more evidence of this pod with ``nproc`` ranks."""
        return self.state.has_ended or self.is_finished or len(self.endings) >= nproc or self.error is not None

    def fact(self, silent: float | None) -> PodFact:
        """The pod for the judge; ``silent``: so many seconds without a word are taken for its loss."""
        state = self.state
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
            # The pods that a Job deletes after one that somebody deleted may well end before it.
            time=min(state.time, state.deleted or state.time) if state.reason == "Deleted" else state.time,
        )

    def unexplained(self) -> Trouble:
        """The trouble of one that ``is_unexplained``; what it wrote last is read as a rank's own words."""
        state, tail = self.state, self.state.log.splitlines()
        how = f"signal {state.signal}" if state.signal is not None else f"exit code {state.exit_code}"
        if state.exit_code == ExitCode.USAGE:
            # launch refused its arguments; it would refuse them again.
            said = state.message or (tail[-1] if tail else "see its log")
            quote = f"pod {state.name} on {state.node} refused its arguments (exit code 2): {said}"
            return Trouble(cause=Cause.LAUNCHER_USAGE, quote=quote, pod=state.name, node=state.node)
        code = state.exit_code if state.exit_code in set(ExitCode) else None
        cause, quote = Cause.UNKNOWN, f"pod {state.name} on {state.node} ended with {how} and reported nothing"
        if tail:
            ending = Ending(
                rank=0, time=state.time, exit_code=state.exit_code, signal=state.signal, stopped=False, tail=tail
            )
            found = judge([ending], [], [])
            cause, said = found.cause, tail[-1] if found.cause == Cause.UNKNOWN else found.quote
            quote = f"{quote}; its log: {said}"
        return Trouble(cause=cause, quote=quote, code=code, time=state.time, pod=state.name, node=state.node)


def uncommitted(views: Iterable[PodView]) -> list[PodView]:
    """Those whose ranks wrote what nobody has committed, where the first node's wrote nothing."""
    there = list(views)
    waits = any(view.end == "unchanged" for view in there)
    return [view for view in there if waits and view.uncommitted]


def holder(views: Iterable[PodView]) -> int:
    """When all have finished: the node rank that has yet to commit the end, since it alone holds it; -1: none has, or
    nobody can tell which.
    """
    there = list(views)
    ends = {view.end for view in there}
    if not all(view.is_finished for view in there) or "unchanged" not in ends or "committed" in ends:
        return -1
    ranks = [view.state.index for view in uncommitted(there)] or [0]
    return ranks[0] if len(ranks) == 1 else -1
