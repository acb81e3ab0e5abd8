"""Waiting for a gang: in a queue for as long as it holds nothing, then for the rest of its nodes, not for ever.

Two clocks: none runs while the gang is queued. The placement deadline runs from the moment it may hold nodes until
each of its pods has one; the check-in clock begins after that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from argosy.steps.cluster.api import UNHOOKED
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import PodState, Standing
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.verdict import PodFact, Verdict, judge

TICK_SECONDS = 0.2
QUIET_SECONDS = 2.0
"""A gang is placed in a moment as a rule; of that nobody needs to be told."""
ELASTIC_SECONDS = 30.0
"""So long an elastic gang that has nodes enough waits for the rest of them."""
STUCK_SECONDS = 60.0
"""So long a pod may say that it cannot start before it is believed: Secrets and images may be a moment late."""
WORDS_SECONDS, MOST_WORDS_SECONDS = 15.0, 600.0
"""So long the same place is not told in other words; doubled each time."""
STUCK = (
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull", "FailedMount",
    "ImagePullBackOff", "InvalidImageName", "RunContainerError",
)  # fmt: skip
_NEVER = re.compile(r"(?!.*insufficient unused quota).*(> maximum capacity|unavailable in ClusterQueue)")
"""Kueue's word for more than a queue has in all; of several flavors one may have room once others are done."""


class PlacementClock:
    """Says when a gang has held nodes too long without all of its own; it stands still while the gang is queued."""

    def __init__(self, limit_seconds: float) -> None:
        self.limit_seconds = limit_seconds
        self._admitted_at = 0.0

    def is_over(self, standing: Standing, now: float) -> bool:
        """``now`` by the monotonic clock."""
        holds = standing.phase not in ("queued", "refused")
        self._admitted_at = (self._admitted_at or now) if holds else 0.0
        return bool(self._admitted_at) and now - self._admitted_at > self.limit_seconds


class News:
    """Says what is worth an event: each other phase or number of nodes at once. Of the same place only other words
    less and less often: a scheduler may name another node each second, for all the days that a gang is queued.
    """

    def __init__(self) -> None:
        self._place: tuple[str, int] | None = None
        self._why, self._due, self._pause = "", 0.0, WORDS_SECONDS

    def is_worth_telling(self, standing: Standing, placed: int, now: float) -> bool:
        """``now`` by the monotonic clock."""
        if (standing.phase, placed) != self._place:
            self._place, self._pause = (standing.phase, placed), WORDS_SECONDS
        elif standing.why in ("", self._why) or (self._why and now < self._due):
            return False
        else:
            self._pause = min(2 * self._pause, MOST_WORDS_SECONDS)
        self._why, self._due = standing.why, now + self._pause
        return True


class Refusal:
    """Says when nothing is to be waited for: pods are refused, by Pod Security, a policy, a webhook, a LimitRange, or
    the queue has less in all than the gang wants. None of that passes by itself, as a quota does that others use up.
    A webhook that does not answer may be back, and has as long as nodes have. Where as large a gang has trained, a
    smaller queue was made so, and may be made larger again: the gang waits in it and holds nothing.
    """

    def __init__(self, unhooked_seconds: float, *, has_fitted: bool = False) -> None:
        self._since = 0.0
        self._unhooked_seconds = unhooked_seconds
        self._has_fitted = has_fitted

    def is_over(self, standing: Standing, now: float) -> bool:
        """``now`` by the monotonic clock."""
        never = standing.phase == "queued" and not self._has_fitted and bool(_NEVER.match(standing.why))
        refused = standing.phase == "refused" or never
        self._since = (self._since or now) if refused else 0.0
        limit = self._unhooked_seconds if UNHOOKED in standing.why else STUCK_SECONDS
        return bool(self._since) and now - self._since > limit

    def verdict(self, standing: Standing) -> Verdict:
        """With what the cluster said."""
        cause = Cause.CONFIG_OR_RBAC if standing.phase == "refused" else Cause.UNSCHEDULABLE
        code = ExitCode.TRANSIENT if UNHOOKED in standing.why else ExitCode.CONFIGURATION
        return Verdict(cause=cause, exit_code=int(code), quote=standing.why)


def cannot_begin(stuck: Sequence[PodState]) -> Standing:
    """How a gang stands whose pods have nodes, and of which these do not start."""
    first = stuck[0]
    others = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
    return Standing(phase="starting", why=f"{first.name}{others} on {first.node}: {first.reason}: {first.message}")


class Placing:
    """Follow one gang until it is placed."""

    def __init__(self, context: Context, gang: SupervisedGang, expect: Callable[[], list[PodState]]) -> None:
        """``expect`` asks for the pods and tells the channel of them."""
        self._context = context
        self._gang = gang
        self._expect = expect
        self._news = News()
        self._has_told = False
        self.enough = 0
        """With how many nodes an elastic gang could start that did not get all of them; 0: it has to be whole."""

    def wait(self) -> Verdict | None:
        """None once every pod has its node or one has ended; otherwise why that never came.

        Raises:
            Stopped: SIGTERM arrived.
        """
        context, began = self._context, self._context.clock.now()
        clock = PlacementClock(context.settings.args.placement_timeout_seconds)
        trained = (len(each["pods"]) for each in context.ledger.of("restart"))
        refusal = Refusal(clock.limit_seconds, has_fitted=max(trained, default=0) >= self._gang.nnodes)
        elastic = PlacementClock(min(ELASTIC_SECONDS, clock.limit_seconds))
        while True:
            states = self._expect()
            standing = context.host.standing(self._gang.name)
            if any(state.has_ended for state in states):
                return None
            if standing.phase == "placed" and len(states) >= self._gang.nnodes:
                if self._has_told:  # who waited is told that it is over
                    self.say(standing, states)
                return None
            if standing.phase == "lost":
                return judge([], [], [PodFact(name=self._gang.name, reason="Deleted", message=standing.why)])
            now = context.clock.now()
            if elastic.is_over(standing, now) and self._has_enough(states):
                self.enough = len(_placed(states))
                return self._released(states, elastic.limit_seconds, standing.why)
            if refusal.is_over(standing, now):
                return refusal.verdict(standing)
            if clock.is_over(standing, now):
                return self._released(states, clock.limit_seconds, standing.why)
            if now - began > QUIET_SECONDS:
                self.say(standing, states)
            context.pause(TICK_SECONDS)

    def say(self, standing: Standing, states: list[PodState]) -> None:
        """Tell what is news of the placement, in the log of the run and of the pod."""
        placed = len(_placed(states))
        if not self._news.is_worth_telling(standing, placed, self._context.clock.now()):
            return
        self._has_told = True
        self._context.record.log.append(
            "gang_waits",
            attempt=self._gang.attempt,
            gang=self._gang.name,
            phase=standing.phase,
            placed=placed,
            nnodes=self._gang.nnodes,
            why=standing.why,
        )
        why = f": {standing.why}" if standing.why else ""
        text = f"gang {self._gang.name} is {standing.phase}, {placed} of {self._gang.nnodes} pods have a node{why}"
        print(f"argosy: {text}", file=sys.stderr, flush=True)

    def _has_enough(self, states: list[PodState]) -> bool:
        if self._context.manifest.placement not in ("none", "volcano"):
            return False  # whoever places it whole knows best; Volcano was asked for the least
        return self._context.settings.args.min_nnodes <= len(_placed(states)) < self._gang.nnodes

    def _released(self, states: list[PodState], limit: float, why: str) -> Verdict:
        quote = f"{len(_placed(states))} of {self._gang.nnodes} pods had a node {limit:g} s after the gang was admitted"
        quote += ", enough to go on with" if self.enough else ""
        return Verdict(
            cause=Cause.UNSCHEDULABLE,
            exit_code=int(ExitCode.TRANSIENT),
            quote=f"{quote}: {why}" if why else quote,
        )


def _placed(states: list[PodState]) -> list[str]:
    """The nodes of those that have one."""
    return [state.node for state in states if state.node]
