"""The event loop that jobs are carried through: connections kept alive, retries, time limits, and the pace."""

from __future__ import annotations

import heapq
import random
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer.answers import Malformed
from argosy.steps.transfer.jobs import Again, Job
from argosy.steps.transfer.pace import Pace
from argosy.steps.transfer.wire.connection import BUFFER, TOGETHER, Connection
from argosy.steps.transfer.wire.route import Route

if TYPE_CHECKING:
    from argosy.steps.transfer.library import LibraryConnection, LibraryRoute

Carried: TypeAlias = "Connection | LibraryConnection"
IDLE_SECONDS = 60.0
"""How long an answer may stand still."""
RETRY_SECONDS = 180.0
_KEEP_SECONDS = 8.0
"""How long a connection is kept without use: servers hang up after 5 to 60 seconds."""
PATIENCE_SECONDS = 1.0
"""How long bytes that came may wait for more, so that fewer wakings bring them."""
_WAITING_BYTES, _LEAST_SHARE = 32 << 20, 64 << 10
"""What may wait for more in all sockets together: the kernel counts it as memory of the pod."""
_SURPRISES = 2
"""How often what comes may be no HTTP, for one job: once may be an accident on the way."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 20.0
_SILENT_SECONDS = 5.0
"""A store that fails longer is spoken of, once: who waits would think that nothing happens."""


class Way(Protocol):
    """To the host; ``route`` is asked for each connection, and may change."""

    @property
    def route(self) -> Route | LibraryRoute:
        """For the next connection."""

    def surprised(self, what: str) -> bool:
        """Answers are nothing that HTTP knows: whether there is another route now."""


class Loop:
    """For each job: ``begin``, then ``head``, ``body``…, ``finish``, or ``broken``; all of it again until ``finish``
    returns, or ``fail`` was called."""

    def __init__(self, way: Way, *, most: int | None = None) -> None:
        """``most``: never more requests at a time."""
        self._way = way
        self.poll = select.epoll()
        self.buffer = memoryview(bytearray(BUFFER))
        self.now = time.monotonic()
        self.pace = Pace(self.now) if most is None else Pace(self.now, most)
        self.on_throttled: Callable[[], None] = lambda: None
        self._queue: deque[Job] = deque()
        self._later: list[tuple[float, int, Job]] = []
        self._jobs: dict[int, Job] = {}
        self._connections: dict[int, Carried] = {}
        self._idle: list[Carried] = []
        self._watched: dict[int, Callable[[], None]] = {}
        self._swept, self._count = self.now, 0
        self.retry_seconds = RETRY_SECONDS
        self._complained = False

    @property
    def jobs(self) -> int:
        """How many are not done."""
        return len(self._queue) + len(self._later) + len(self._jobs)

    def flying(self) -> list[Job]:
        """Jobs that are asked or will be asked again."""
        return [*self._jobs.values(), *(job for _, _, job in self._later)]

    def add(self, job: Job) -> None:
        """Carry this one, too; nothing is sent before :meth:`turn`."""
        self._queue.append(job)

    def watch(self, fd: int, ready: Callable[[], None]) -> None:
        """Call ``ready`` when ``fd`` can be read."""
        self._watched[fd] = ready
        self.poll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        """Drop everything."""
        for connection in list(self._connections.values()):
            connection.close()
        self.poll.close()

    def turn(self, timeout: float) -> None:
        """Do what can be done now; waits up to ``timeout`` seconds for something to do."""
        self._come_back()
        self._pump()
        if self._later:
            timeout = min(timeout, max(0.0, self._later[0][0] - self.now))
        began = time.monotonic()
        events = self.poll.poll(min(timeout, 1.0))
        self.now = time.monotonic()
        self.pace.slept(self.now - began)
        for fd, _ in events:
            connection = self._connections.get(fd)
            if connection is not None:
                connection.step()
            elif fd in self._watched:
                self._watched[fd]()
        while self._later and self._later[0][0] <= self.now:
            self._queue.appendleft(heapq.heappop(self._later)[2])
        if self.now - self._swept > PATIENCE_SECONDS:
            self._sweep()
        self._pump()

    # ---- what connections tell

    def finished(self, connection: Carried) -> None:
        """An answer is whole."""
        job = self._jobs.pop(connection.number)
        try:
            length = job.finish()
        except Again as again:
            if again.elsewhere:
                self._drop(connection)
            self._again(job, again)
        except StoreError as error:
            job.fail(error)
        else:
            self.pace.answered(length, connection.first - connection.sent, self.now)
        if connection.fd >= 0:
            if self._queue and len(self._jobs) < self.pace.limit and connection.route is self._way.route:
                self._ask(connection, self._queue.popleft())
            else:
                self._idle.append(connection)
        else:
            self._connections.pop(connection.number, None)

    def hung_up(self, connection: Carried) -> None:
        """An idle one is gone."""
        self._connections.pop(connection.number, None)
        if connection in self._idle:
            self._idle.remove(connection)

    def lost(self, connection: Carried, error: Exception) -> None:
        """An answer is lost."""
        job = self._jobs.pop(connection.number, None)
        self._connections.pop(connection.number, None)
        if job is None:
            self.hung_up(connection)
            return
        if isinstance(error, StoreError):
            job.fail(error)
            return
        if isinstance(error, Again):
            self._again(job, error)
            return
        why = job.broken(error)
        if why.cause == Cause.S3_ACCESS:
            # A certificate that is not trusted will not be trusted later.
            job.fail(why)
            return
        if isinstance(error, Malformed):
            job.surprises += 1
            if job.surprises >= _SURPRISES and self._way.surprised(f"an answer is not HTTP as we know it ({error})"):
                job.failing_since = 0.0
                self._again(job, Again(why, at_once=True))
                return
        # A server may hang up on an idle connection at the very moment it is used: that is nobody's failure.
        stale = connection.used > 0 and connection.first == connection.sent
        self._again(job, Again(why, at_once=stale))

    def share(self) -> int:
        """A connection's share of the bytes that may wait in sockets."""
        return max(_LEAST_SHARE, min(TOGETHER, _WAITING_BYTES // max(1, len(self._jobs))))

    # ---- inside

    def _come_back(self) -> None:
        """While nobody called :meth:`turn`, no store failed and no answer stood still: no limit counts that time."""
        away, self.now = time.monotonic() - self.now, time.monotonic()
        if away > PATIENCE_SECONDS:
            for job in (*self.flying(), *self._queue):
                job.failing_since += away if job.failing_since else 0.0
            for number in self._jobs:
                self._connections[number].last += away

    def _pump(self) -> None:
        while self._queue and len(self._jobs) < self.pace.limit:
            job = self._queue.popleft()
            connection = self._idle_one() or self._open(job)
            if connection is not None:
                self._ask(connection, job)

    def _idle_one(self) -> Carried | None:
        route = self._way.route
        while self._idle:
            connection = self._idle.pop()
            if connection.route is route:
                return connection
            self._drop(connection)
        return None

    def _open(self, job: Job) -> Carried | None:
        route = self._way.route
        try:
            connection = _connection(self, route)
        except OSError as error:
            self._again(job, Again(job.broken(error)))
            return None
        self._connections[connection.number] = connection
        return connection

    def _ask(self, connection: Carried, job: Job) -> None:
        try:
            request = job.begin()
        except StoreError as error:
            job.fail(error)
            self._idle.append(connection)
            return
        job.tries += 1
        self._jobs[connection.number] = job
        connection.ask(request, job)

    def _drop(self, connection: Carried) -> None:
        self._connections.pop(connection.number, None)
        connection.close()

    def _again(self, job: Job, again: Again) -> None:
        if again.throttled and self.pace.throttled(self.now):
            self.on_throttled()
        job.failing_since = job.failing_since or self.now
        if self.now - job.failing_since > self.retry_seconds:
            job.fail(again.why)
            return
        if not self._complained and self.now - job.failing_since > _SILENT_SECONDS:
            self._complained = True
            text = f"argosy: {again.why}; it is asked again for {self.retry_seconds:.0f} s"
            print(text, file=sys.stderr, flush=True)
        if again.at_once:
            self._queue.appendleft(job)
            return
        # Full jitter: others met the same refusal at the same time.
        pause = random.uniform(0.0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(job.tries, 16)))
        self._count += 1
        heapq.heappush(self._later, (self.now + pause, self._count, job))

    def _sweep(self) -> None:
        self._swept = self.now
        for connection in list(self._connections.values()):
            still = self.now - connection.last
            if connection.number in self._jobs:
                limit = IDLE_SECONDS if connection.connected else connection.connect_seconds
                if still > limit:
                    connection.give_up(TimeoutError(f"nothing came for {limit:.0f} s"))
                elif still > PATIENCE_SECONDS:
                    connection.wait_less()
            elif still > _KEEP_SECONDS and connection in self._idle:
                self._idle.remove(connection)
                self._drop(connection)


def _connection(owner: Loop, route: Route | LibraryRoute) -> Carried:
    if isinstance(route, Route):
        if not route.secure:
            return Connection(owner, route)
        from argosy.steps.transfer.wire.secure import SecureConnection

        return SecureConnection(owner, route)
    from argosy.steps.transfer.library import LibraryConnection

    return LibraryConnection(owner, route)
