"""Injected faults on the supervisor's side: who gets one with its assignment, and those done from here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from argosy.steps.contract.channel import Ending
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import (
    CORRUPT,
    NODE_FAULTS,
    SUPERVISOR_KILL,
    Injection,
    check_gang,
    has_fired,
    mark_fired,
)
from argosy.steps.gang.nodes import node_name
from argosy.steps.runlog import RunLog


@runtime_checkable
class FaultyHost(Protocol):
    """A host that can take nodes away on purpose."""

    def evict(self, node: str, grace_seconds: float) -> None:
        """Reclaim the node's pods."""

    def lose(self, node: str) -> None:
        """The node is gone at once."""


class Faults:
    """The injections of this run that have not happened yet."""

    def __init__(
        self, injections: Sequence[Injection], nnodes: int, nproc: int, host: object, grace: float, spares: int = 0
    ) -> None:
        """Check them against the gang.

        Raises:
            InputError: no such rank or node, or this host cannot lose nodes.
        """
        self._nproc = nproc
        self._host = host
        self._grace = grace
        self.corrupted = False
        """Whether one of them has damaged a checkpoint in the store."""
        self._reached: set[Injection] = set()
        self._given: set[Injection] | None = None
        """What ranks of this restart were told to do; None: a supervisor before us told them."""
        self._due = [injection for injection in injections if not has_fired(injection)]
        for injection in self._due:
            _check(injection, nnodes, nproc, host, spares)

    def for_node(self, node_rank: int, *, restores: bool) -> dict[str, Any] | None:
        """The next fault of a rank on this node, for its assignment; ``restores``: there is something to."""
        given = self._given = self._given or set()
        ranks = range(node_rank * self._nproc, (node_rank + 1) * self._nproc)
        own = [injection for injection in self._due if self._teller(injection) in ranks]
        own = [injection for injection in own if restores or injection.phase != "restore"]
        if not own:
            return None
        first = min(own, key=_order)
        given.add(first)
        if first.fault == CORRUPT:
            return {**first.as_fault(), "fault": "kill", "rank": 0}
        return {**first.as_fault(), "rank": self._teller(first)}

    def _teller(self, injection: Injection) -> int | None:
        """The rank whose launch carries it out, or says that its phase has come; None: nobody has to."""
        if injection.phase and injection.fault == SUPERVISOR_KILL:
            return 0
        return injection.node * self._nproc if injection.phase and injection.node is not None else _rank(injection)

    def due(self, step: int, seconds: float, log: RunLog) -> None:
        """Do what is done from here when a rank has reached ``step``, ``seconds`` after the ranks were started."""
        for injection in [item for item in self._due if _rank(item) is None and not item.phase]:
            come = injection.seconds <= seconds if injection.seconds else injection.step <= step
            if come and self._fire(injection, log, step):
                self._carry_out(injection)

    def _carry_out(self, injection: Injection) -> None:
        if injection.fault == SUPERVISOR_KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if injection.node is not None and isinstance(self._host, FaultyHost):
            if injection.fault == "preempt":
                self._host.evict(node_name(injection.node), self._grace)
            else:
                self._host.lose(node_name(injection.node))

    def after(self, endings: Sequence[Ending], log: RunLog, corrupt: Callable[[], bool]) -> None:
        """A restart ended: remember the faults that rank processes had; ``corrupt`` damages the newest checkpoint."""
        reached = {ending.rank: ending.last_step for ending in endings if not ending.stopped}
        given, self._given = self._given, set()
        for injection in list(self._due):
            rank = _rank(injection)
            told = given is None or injection in given
            by_step = told and injection.step and rank is not None and reached.get(rank, -1) >= injection.step
            if rank is None or not (by_step or injection in self._reached):
                continue
            if not self._fire(injection, log, reached.get(rank, injection.step)) or injection.fault != CORRUPT:
                continue
            self.corrupted = corrupt()
            if not self.corrupted:
                print(f"argosy: {injection.text}: there was no checkpoint yet, only rank 0 was killed", file=sys.stderr)

    def said(self, event: Mapping[str, Any], log: RunLog) -> None:
        """launch says that it carried out a fault (for ``corrupt-shard`` the damage comes later, in :meth:`after`)."""
        for injection in sorted(self._due, key=_order):
            fault = "kill" if injection.fault == CORRUPT else injection.fault
            if (fault, self._teller(injection), injection.phase) != (
                event.get("fault"), event.get("rank"), event.get("phase", ""),
            ):  # fmt: skip
                continue
            if int(event.get("step", 0)) < injection.step:
                continue
            if injection.fault == CORRUPT:
                self._reached.add(injection)
            else:
                if self._fire(injection, log, int(event.get("step", 0))) and _rank(injection) is None:
                    self._carry_out(injection)
            return

    def left(self) -> list[str]:
        """Injections that have not happened."""
        return [injection.text for injection in self._due]

    def _fire(self, injection: Injection, log: RunLog, step: int) -> bool:
        self._due.remove(injection)
        if not mark_fired(injection):
            return False
        fields = {"rank": _rank(injection), "node": None if injection.node is None else node_name(injection.node)}
        given = {key: value for key, value in fields.items() if value is not None}
        log.append("injected", fault=injection.fault, step=max(injection.step, step), asked=injection.text, **given)
        log.flush()
        return True


def _order(injection: Injection) -> tuple[int, int]:
    """In which those of one rank come, one in each start."""
    return injection.step, injection.seconds


def _rank(injection: Injection) -> int | None:
    """The rank whose launch carries the fault out."""
    return 0 if injection.fault == CORRUPT else injection.rank


def _check(injection: Injection, nnodes: int, nproc: int, host: object, spares: int) -> None:
    check_gang(injection, nnodes, nproc, spares)
    if injection.fault in NODE_FAULTS and not isinstance(host, FaultyHost):
        raise InputError(f"inject = {injection.text!r}: only virtual nodes of one machine can be taken away")
