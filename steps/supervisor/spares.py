"""Gangs with spares: which pods could train, who sits at which rank, and who stands by.

A pod on a node that was excluded is not told to leave: it would be made again, perhaps on that very node. It is given
no rank, and holds the node until the gang ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import CheckIn
from argosy.steps.contract.trait import Trait
from argosy.steps.gang.host import PodState
from argosy.steps.supervisor.budget import Decision
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.leaving import LEAVE_SECONDS
from argosy.steps.supervisor.placing import TICK_SECONDS
from argosy.steps.supervisor.watch import SILENT_SECONDS, alive

_LEAVING = "DisruptionTarget"
AGAIN_SECONDS = 5.0
"""So long a restart has before pods are made in place of lost ones, unless it makes a step: they are in its way."""

ORDER_SECONDS = 2.0
"""So long a new gang that could begin waits for pods of lower numbers, so that it is the last one that stands by."""


def usable(context: Context, gang: SupervisedGang, states: Iterable[PodState], avoid: str = "") -> dict[str, PodState]:
    """Pods that may get a rank, by name; those on the node ``avoid`` only if there are not enough others."""
    bad, silent = set(context.ledger.excluded()), context.channel.silent()
    found = {
        name: state
        for name, state in alive(states).items()
        if name not in silent and state.node not in bad and not state.deleted and state.reason != _LEAVING
    }
    others = {name: state for name, state in found.items() if state.node != avoid}
    return others if len(others) >= gang.nnodes else found


def have_refilled(context: Context, gang: SupervisedGang, restart: int, decision: Decision, cause: Cause) -> bool:
    """Wait until the pods with ranks that are left ask for their next restart; whether all ranks have a pod then.

    Raises:
        Stopped: SIGTERM arrived.
    """
    if Trait.NEW_PODS in cause.traits and cause != Cause.PREEMPTED_EVICTED:
        return False  # it never was whole
    began, entry = time.monotonic(), context.ledger.last("restart") or {"pods": {}}
    while (waited := time.monotonic() - began) < context.settings.args.grace_seconds + LEAVE_SECONDS:
        states = context.host.pods(gang.name)
        ready = {pod for pod, each in context.channel.check_ins().items() if each.last_restart <= restart}
        listening, heard = context.channel.listening(SILENT_SECONDS), context.channel.listening(float("inf"))
        able = set(usable(context, gang, states, decision.avoid or decision.exclude))
        # A supervisor that has just begun has heard nobody yet, and a pod that is being made has said nothing yet.
        awaited = (able | set(entry["pods"])) - heard if waited < 2 * SILENT_SECONDS else set()
        stopping = (set(alive(states)) & set(entry["pods"]) & (listening | awaited)) - ready
        filled = len(ready & able) >= gang.nnodes
        if not stopping and (filled or not able & awaited):
            return filled and context.host.standing(gang.name).phase != "lost"
        context.hear(gang.attempt)
        context.pause(TICK_SECONDS)
    return False


class Attendance:
    """Who stands by in one restart, and who came in place of whom: for the log of the run."""

    def __init__(self, context: Context, gang: SupervisedGang, restart: int) -> None:
        self._context, self._gang, self._restart = context, gang, restart
        self._told: dict[str, bool] = {}
        self._ended: set[str] = set()
        self._enough_at = 0.0

    def is_enough(self, ready: Mapping[str, CheckIn], missing: Iterable[PodState]) -> bool:
        """Whether ranks can be given to those that are ``ready``."""
        if len(ready) < self._gang.nnodes:
            return False
        self._enough_at = self._enough_at or time.monotonic()
        last = sorted(each.pod_index for each in ready.values())[self._gang.nnodes - 1]
        waits = self._restart == 0 and any(state.index < last for state in missing)
        return not waits or time.monotonic() - self._enough_at > ORDER_SECONDS

    def took_over(self, before: Mapping[str, Any], order: Sequence[CheckIn], states: Sequence[PodState]) -> None:
        """Tell each rank that another pod has now than in the ledger's entry ``before``."""
        nodes = {state.name: state.node for state in states}
        pods = {rank: pod for pod, rank in before.get("pods", {}).items()}
        for rank, message in enumerate(order):
            if (old := pods.get(rank, message.pod)) != message.pod:
                there = {"node_rank": rank, "node": message.node, "pod": message.pod}
                came = {"from_pod": old, "from_node": nodes.get(old, "")}
                where = {"attempt": self._gang.attempt, "restart": self._restart}
                self._context.record.log.append("took_over", **where, **there, **came)

    def keep(self, states: Sequence[PodState], seats: Mapping[str, int], settled: bool) -> None:
        """Hear pods that came since, and have those that ended made again once the restart has ``settled``."""
        self._context.channel.admit(frozenset(state.name for state in states))
        there = alive(states)
        self._see(seats, there)
        for state in states:
            if state.name not in there and self._told.pop(state.name, None) is not None:
                where = {"attempt": self._gang.attempt, "node": state.node, "pod": state.name}
                self._context.record.log.append("spare_lost", **where)
        ended = {state.name for state in states if state.has_ended and state.name not in seats}
        if settled and not ended <= self._ended:
            self._ended = ended
            self._context.replenish(self._gang)

    def _see(self, seats: Mapping[str, int], there: Mapping[str, PodState]) -> None:
        """Tell each pod that stands by, and once more when it is ready; ``seats`` have ranks."""
        bad = set(self._context.ledger.excluded())
        for pod, message in self._context.channel.check_ins().items():
            ready = message.stands_by == "ready"
            seated = pod in seats or pod not in there or message.node in bad
            if seated or self._told.get(pod) in (True, ready):
                continue
            self._told[pod] = ready
            told = {"attempt": self._gang.attempt, "node": message.node, "pod": pod, "ready": ready}
            self._context.record.log.append("standing_by", **told)
