"""Heartbeat and news of one restart to the supervisor, in a thread of its own; the supervisor's orders back."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from argosy.steps.contract.channel import (
    ORPHAN_SECONDS,
    REPORT_SECONDS,
    Assignment,
    End,
    Ending,
    Orders,
    Part,
    Phase,
    Report,
    Save,
)
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trouble import Trouble
from argosy.steps.launch.channel_client import ChannelAway, ChannelClient, ChannelRefused
from argosy.steps.launch.identity import Identity

BATCH = 2000
"""Most progress records in one report."""
KEPT = 100_000
"""Most progress records kept while the channel is away; the oldest go first."""
_SLOWEST_SECONDS = 5.0
_REFUSED_SECONDS = 30.0
_COMPLAIN_SECONDS = 30.0


class Reporter:
    """Sends a pod's reports and takes its orders; all methods may be called from any thread."""

    def __init__(self, client: ChannelClient, identity: Identity, assignment: Assignment) -> None:
        self._client = client
        self._identity = identity
        self._assignment = assignment
        self._changed = threading.Condition()
        self._phase: Phase = "staging"
        self._steps: list[dict[str, Any]] = []
        self._worked: list[dict[str, Any]] = []
        self._furthest: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []
        self._endings: list[Ending] = []
        self._error: Trouble | None = None
        self._orders: Orders | None = None
        self._save: Save | None = None
        self._part: Part | None = None
        self._uncommitted = ""
        self._end: End = ""
        self._told_save: Save | None = None
        self._told_parts: list[Part] = []
        self._told_step, self._commits, self._answered = 0, -1, 0
        self._urgent, self._closed = True, False
        self._away_since: float | None = None
        self._complained = 0.0
        self._refused_since: float | None = None
        self.on_root: Callable[[Trouble], None] | None = None
        """Called once, when the supervisor first names the root cause."""
        self.on_step: Callable[[int], None] | None = None
        """Called with the gang's furthest step, each time the supervisor answers."""
        self._thread = threading.Thread(target=self._serve, name="reporter", daemon=True)

    @property
    def node(self) -> str:
        """Name of the node it reports for."""
        return self._identity.node

    @property
    def pod(self) -> str:
        """Name of the pod it reports for."""
        return self._identity.pod

    def start(self) -> None:
        """Begin the heartbeat."""
        self._thread.start()

    def close(self) -> None:
        """Deliver what is left, while it is taken, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._client.close()

    def enter(self, phase: Phase) -> None:
        """The pod is in another phase; told at once. A failure is never taken back."""
        with self._changed:
            if self._error is None:
                self._phase = phase
                self._wake()

    def step(self, record: dict[str, Any], *, anew: bool = False) -> None:
        """A rank's progress record; ``anew``: the records before counted something else."""
        with self._changed:
            self._steps.append(record)
            del self._steps[:-KEPT]
            rank, step = str(record["rank"]), int(record["step"])
            self._furthest[rank] = max(step, 0 if anew else self._furthest.get(rank, 0))

    def worked(self, rank: int, steps: list[list[float]]) -> None:
        """How long a rank itself worked in its steps."""
        with self._changed:
            self._worked.append({"rank": rank, "steps": steps})
            del self._worked[:-BATCH]

    def gang_step(self) -> int:
        """The furthest step of any rank of the gang, as far as we know; 0: none has told one."""
        with self._changed:
            return max([self._told_step, *self._furthest.values()])

    def event(self, kind: str, **fields: Any) -> None:
        """Queue a record for the run's event log."""
        with self._changed:
            self._events.append({"kind": kind, **fields})

    def ending(self, ending: Ending) -> None:
        """Report at once that a rank ended."""
        with self._changed:
            self._endings.append(ending)
            self._wake()

    def fail(self, error: StepError, digest: str = "", node: str | None = None) -> None:
        """launch itself failed; the first failure stays. ``digest`` of a checkpoint that is damaged; ``node`` that is
        at fault, when it need not be this one, "": nobody knows.
        """
        own = node is None
        with self._changed:
            if self._error is None:
                self._error = Trouble(
                    cause=error.cause,
                    message=str(error),
                    quote=error.quote,
                    code=int(error.code),
                    pod=self._identity.pod if own else "",
                    node=self._identity.node if node is None else node,
                    time=time.time(),
                    digest=digest,
                )
            self._phase = "failed"
            self._wake()

    def keeps(self, uncommitted: str = "", end: End = "") -> None:
        """What this node holds of the checkpoint's files and has not committed, in words; ``end`` as in a Report."""
        with self._changed:
            self._uncommitted, self._end = uncommitted, end
            self._wake()

    def commits(self) -> bool:
        """Whether this node is the one that commits the end, as far as we know."""
        with self._changed:
            return self._commits == self._assignment.node_rank

    def gather(self, save: Save | None) -> None:
        """Node 0: ask the other nodes for their parts of ``save``, or (None) no longer; told at once."""
        with self._changed:
            self._save, self._told_parts = save, []
            self._wake()

    def parts(self, name: str) -> list[Part]:
        """Node 0: what other nodes answered to the save of this name so far."""
        with self._changed:
            return [part for part in self._told_parts if part.save == name]

    def asked(self) -> Save | None:
        """Other nodes: the save that node 0 gathers now, as far as we know."""
        with self._changed:
            return self._told_save

    def answer(self, part: Part) -> None:
        """Report at once what became of our part (nodes other than 0)."""
        with self._changed:
            self._part = part
            self._wake()

    def endings(self) -> list[Ending]:
        """The ends of this restart's ranks so far."""
        with self._changed:
            return list(self._endings)

    def failed(self) -> bool:
        """Whether launch itself failed."""
        with self._changed:
            return self._error is not None

    def orders(self) -> Orders | None:
        """Orders other than ``continue``, once given."""
        with self._changed:
            return self._orders

    def wait(self, seconds: float) -> Orders | None:
        """The same as :meth:`orders`, after waiting for a change."""
        with self._changed:
            if self._orders is None:
                self._changed.wait(seconds)
            return self._orders

    def _wake(self) -> None:
        self._urgent = True
        self._changed.notify_all()

    def _serve(self) -> None:
        pause, delivered = REPORT_SECONDS, False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._urgent or self._closed, pause)
                news = self._urgent or self._steps or self._events or self._worked
                self._urgent, closed = False, self._closed
            if news or not (closed and delivered):
                delivered = self._deliver()
            if closed and not (delivered and self._steps):
                return
            pause = REPORT_SECONDS if delivered else min(pause * 2, _SLOWEST_SECONDS)

    def _deliver(self) -> bool:
        with self._changed:
            steps, events, worked = self._steps[:BATCH], list(self._events), list(self._worked)
            report = self._report(steps, events, worked)
        try:
            orders = self._client.report(report)
        except ChannelAway as error:
            self._complain(error)
            return False
        except ChannelRefused as error:
            return self._refused(error)
        self._refused_since = None
        if self._away_since is not None:
            print(f"argosy: the supervisor is back after {time.monotonic() - self._away_since:.0f} s", flush=True)
            self._away_since = None
        with self._changed:
            self._answered += 1
            self._steps = self._steps[len(steps) :]
            self._events = self._events[len(events) :]
            self._worked = self._worked[len(worked) :]
            self._urgent = self._urgent or len(self._steps) >= BATCH
            self._told_save, self._told_parts, self._told_step = orders.save, orders.parts, orders.step
            self._commits = orders.commits
            if orders.command != "continue":
                self._orders = orders
            self._changed.notify_all()
        if self.on_step is not None:
            self.on_step(orders.step)
        if orders.root is not None and self.on_root is not None:
            told, self.on_root = self.on_root, None
            told(orders.root)
        return True

    def _report(
        self, steps: list[dict[str, Any]], events: list[dict[str, Any]], worked: list[dict[str, Any]]
    ) -> Report:
        return Report(
            pod=self._identity.pod,
            node=self._identity.node,
            node_rank=self._assignment.node_rank,
            restart=self._assignment.restart,
            phase="running" if self._phase == "finished" and len(steps) < len(self._steps) else self._phase,
            steps=steps,
            worked=worked,
            furthest=dict(self._furthest),
            events=events,
            endings=list(self._endings),
            error=self._error,
            save=self._save,
            part=self._part,
            uncommitted=self._uncommitted,
            end=self._end,
            answered=self._answered,
        )

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        if now - self._away_since > ORPHAN_SECONDS and (self._error or self._phase in ("finished", "failed")):
            with self._changed:
                self._orders = Orders(command="exit", exit_code=int(ExitCode.PREEMPTED))
                self._changed.notify_all()
        if now - self._complained > _COMPLAIN_SECONDS:
            self._complained = now
            print(f"argosy: the supervisor does not answer, training goes on ({error})", file=sys.stderr, flush=True)

    def _refused(self, error: ChannelRefused) -> bool:
        # A supervisor that is just starting may not know its gang yet; only a lasting refusal is an answer.
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        if now - self._refused_since > _REFUSED_SECONDS:
            print(f"argosy: fenced: {json.dumps(str(error))}", file=sys.stderr, flush=True)
            with self._changed:
                self._orders = Orders(command="exit", exit_code=int(ExitCode.FENCED))
                self._changed.notify_all()
        return False
