"""The supervisor's end of the control channel: what pods said, and what they are told.

Handlers run in threads of the HTTP server and only touch the state below its lock; the supervisor's one thread
reads and changes it between waits. See :mod:`argosy.steps.contract.channel` for the messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from argosy.steps.contract.channel import (
    LONG_POLL_SECONDS,
    REPORT_SECONDS,
    Assignment,
    CheckIn,
    Orders,
    Report,
    StandBy,
)
from argosy.steps.contract.errors import StepError
from argosy.steps.supervisor.gathering import Gathering

SLACK_SECONDS = 5.0
"""Between two long polls of a pod that waits."""
STORED_SECONDS = 1.0
"""What is being stored for longer is heard before it is."""
Keep = Callable[[str, Report], None]


class NotReady(Exception):
    """The supervisor has just been started and does not know its gang yet: ask again."""


class Stranger(Exception):
    """The pod belongs to no gang that is supervised now."""


class Channel:
    """State of the channel for one gang at a time; every method may be called from any thread."""

    def __init__(self, keep: Keep, nproc: int = 1) -> None:
        """``keep(gang, report)`` makes a report with endings or an error durable; called before it is answered.

        ``nproc``: ranks of a pod.
        """
        self._keep, self._nproc = keep, nproc
        self._changed = threading.Condition()
        self._gang = ""
        self._pods: frozenset[str] | None = None
        self._more = False
        self._check_ins: dict[str, CheckIn] = {}
        self._assigned: dict[str, Assignment] = {}
        self._seen: dict[str, float] = {}
        self._reports: list[Report] = []
        self._kept_now: dict[str, tuple[float, Report]] = {}
        """What pods have said that is being stored, and since when; each waits for its answer."""
        self._noted: dict[str, tuple[int, list[int]]] = {}
        """Of each pod: how many of its reports were answered, and how much of the news since then was noted."""
        self._running = -1
        self._orders = Orders(command="continue")
        self._step = self._saved = 0
        self._gathering = Gathering()
        self._stand_by: StandBy | None = None
        self._told: set[str] = set()
        """Pods that were told to stand by, at once."""
        self._closed = False

    # The supervisor's side.

    def expect(self, gang: str, pods: frozenset[str], restart: int = 0, *, more: bool = False) -> None:
        """Talk to these pods of ``gang`` from now on; every other pod is refused, or put off while ``more`` will come.

        ``restart`` is the one that runs or comes next: pods that still run an earlier one are told to stop it.
        """
        with self._changed:
            if (gang, pods, restart, more) == (self._gang, self._pods, self._running, self._more):
                return
            if gang != self._gang or self._pods is None:
                self._check_ins, self._assigned, self._seen, self._reports = {}, {}, {}, []
                self._noted, self._told = {}, set()
            self._check_ins = {pod: message for pod, message in self._check_ins.items() if pod in pods}
            self._gang, self._pods, self._more = gang, pods, more
            self._running = restart
            self._orders = Orders(command="continue")
            self._changed.notify_all()

    def admit(self, pods: frozenset[str]) -> None:
        """Talk to these pods too, which came in place of lost ones while a restart runs."""
        with self._changed:
            if self._pods is not None and not pods <= self._pods:
                self._pods |= pods
                self._changed.notify_all()

    def stand_by(self, message: StandBy) -> None:
        """What pods without a rank are told from now on."""
        with self._changed:
            self._stand_by = message
            self._changed.notify_all()

    def forget(self) -> None:
        """Supervise no gang for now: whoever asks is told to ask again."""
        with self._changed:
            self._pods = None
            self._changed.notify_all()

    def check_ins(self) -> dict[str, CheckIn]:
        """Pods that wait for their next assignment now."""
        with self._changed:
            return dict(self._check_ins)

    def assign(self, restart: int, assignments: Mapping[str, Assignment], *, released: bool = True) -> None:
        """Begin a restart: hand each pod its part. ``released`` False: a restart that began under a supervisor
        before us; pods that wait get their part all the same, the others have it already.
        """
        with self._changed:
            self._assigned = dict(assignments)
            self._running = restart
            self._step = self._saved = 0
            self._gathering = Gathering()
            self._orders = Orders(command="continue")
            if released:  # who stands by is answered by no assignment, and waits on
                self._check_ins = {pod: each for pod, each in self._check_ins.items() if pod not in assignments}
            self._changed.notify_all()

    def order(self, orders: Orders) -> None:
        """What every report of the current restart is answered with from now on."""
        with self._changed:
            self._orders = orders
            self._changed.notify_all()

    @property
    def step(self) -> int:
        """The furthest that a rank told, or else saved, since the last restart began; 0: none yet."""
        return self._step or self._saved

    def drain(self) -> list[Report]:
        """Reports since the last call, in order of arrival; the first may be of the restart before."""
        with self._changed:
            reports, self._reports = self._reports, []
            late = [each for since, each in self._kept_now.values() if time.monotonic() - since > STORED_SECONDS]
            return reports + [each for each in late if each.restart == self._running]

    def listening(self, seconds: float) -> set[str]:
        """Pods that wait for an answer now or sent something within the last ``seconds``."""
        since = time.monotonic() - seconds
        with self._changed:
            return set(self._check_ins) | {pod for pod, when in self._seen.items() if when > since}

    def silent(self) -> set[str]:
        """Pods that were heard once and are gone since: those that wait ask again after each long poll."""
        since = time.monotonic() - LONG_POLL_SECONDS - SLACK_SECONDS
        with self._changed:
            return {pod for pod, when in self._seen.items() if when < since}

    def wait(self, seconds: float) -> None:
        """Sleep until something arrives, at most ``seconds``."""
        with self._changed:
            if not self._reports:
                self._changed.wait(seconds)

    def close(self) -> None:
        """Let every waiting handler answer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # The pods' side.

    def answer_check_in(self, message: CheckIn) -> dict[str, Any]:
        """The assignment of the next restart, orders to exit, or ``{"wait": true}`` while there is neither.

        Raises:
            NotReady, Stranger: see there.
        """
        # One that prepares itself asks often: who stands by is ready only when it has said so.
        deadline = time.monotonic() + (1.0 if message.stands_by == "preparing" else LONG_POLL_SECONDS)
        with self._changed:
            self._check(message.pod)
            self._check_ins[message.pod] = message
            self._seen[message.pod] = time.monotonic()
            self._changed.notify_all()
            while not self._closed and message.pod in (self._pods or ()):
                ready = self._assigned.get(message.pod)
                if ready is not None and ready.restart > message.last_restart:
                    self._check_ins.pop(message.pod, None)
                    self._seen[message.pod] = time.monotonic()
                    self._noted.pop(message.pod, None)
                    return asdict(ready)
                if self._orders.command == "exit":
                    return asdict(self._orders)
                left = deadline - time.monotonic()
                if left <= 0 or (self._is_spare(message) and message.pod not in self._told):
                    break
                self._changed.wait(left)
            self._seen[message.pod] = time.monotonic()
            if self._stand_by is None or not self._is_spare(message):
                return {"wait": True}
            self._told.add(message.pod)
            return {"wait": True, "stand_by": asdict(self._stand_by)}

    def _is_spare(self, message: CheckIn) -> bool:
        return self._stand_by is not None and bool(self._assigned) and message.pod not in self._assigned

    def answer_report(self, message: Report) -> dict[str, Any]:
        """Note the report and give the orders that stand; a pod that has no more to tell of its failure waits for some.

        Raises:
            NotReady, Stranger: see there. StepError: evidence could not be stored; the pod sends it again.
        """
        with self._changed:
            self._check(message.pod)
            gang = self._gang
            self._seen[message.pod] = time.monotonic()
        if message.endings or message.error:
            self._keep_heard(gang, message)
        with self._changed:
            self._check(message.pod)
            self._seen[message.pod] = time.monotonic()
            self._note(message)
            if message.restart == self._running:
                self._step = max([self._step, *_steps(message)])
                self._saved = max([self._saved, *message.saved_steps(counted=True)])
                self._gathering.hear(message)
                self._changed.notify_all()
                if self._orders.command == "continue" and _has_failed(message, self._nproc):
                    given = self._orders
                    self._changed.wait_for(lambda: self._orders is not given or self._closed, REPORT_SECONDS)
                    self._check(message.pod)
            if message.restart == self._running:
                return {**asdict(self._orders), "step": self.step, **self._gathering.news(message.node_rank)}
            stale = message.restart < self._running
            return asdict(Orders(command="stop" if stale else "continue"))

    def _keep_heard(self, gang: str, message: Report) -> None:
        """A store that is away takes a minute to refuse, and the pod waits for its answer: it is not silent.

        What its last steps say is heard with the rest only, once: who is to judge waits for that a little.
        """
        heard = replace(message, steps=[], worked=[], events=[])
        kept = time.monotonic(), heard
        with self._changed:
            self._kept_now[message.pod] = kept
        try:
            self._keep(gang, message)
        except StepError:
            with self._changed:
                self._note(heard)
            raise
        finally:
            with self._changed:
                if self._kept_now.get(message.pod) is kept:  # one that was not answered asks again meanwhile
                    del self._kept_now[message.pod]

    def _note(self, message: Report) -> None:
        """Its news that were not noted before: one that takes longer to store than its pod waits is sent again."""
        if message.restart != self._running:
            return
        news = [message.steps, message.events, message.worked]
        answered, noted = self._noted.get(message.pod, (-1, [0, 0, 0]))
        if 0 <= message.answered < answered:  # it was sent again and answered since
            news = [[], [], []]
        elif message.answered >= 0:
            noted = noted if message.answered == answered else [0, 0, 0]
            self._noted[message.pod] = message.answered, [max(len(a), b) for a, b in zip(news, noted, strict=True)]
            news = [each[count:] for each, count in zip(news, noted, strict=True)]
        message = replace(message, steps=news[0], events=news[1], worked=news[2])
        self._reports.append(message)

    def _check(self, pod: str) -> None:
        if self._pods is None or (self._more and pod not in self._pods):
            raise NotReady
        if pod not in self._pods:
            raise Stranger


def _steps(message: Report) -> list[int]:
    return [record["step"] for record in message.steps if isinstance(record.get("step"), int)]


def _has_failed(message: Report, nproc: int) -> bool:
    """Whether the pod can only wait for what is decided."""
    bad = any(ending.exit_code != 0 and not ending.stopped for ending in message.endings)
    return message.phase == "failed" or (bad and len(message.endings) >= nproc)
