"""One thread that waits for sockets, timers and finished work; the work itself is done in threads of its own."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from argosy.steps.checkpointer.lines import Lines, Payload, Record

OnLine = Callable[[Record, Payload], None]


class Loop:
    """Handlers run one at a time, in the thread that called :meth:`run`: what they share needs no lock."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ, self._awake)
        self._finished: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self.working = 0
        """Pieces of work that are not finished."""
        self._stopped = False

    def watch(self, lines: Lines, on_line: OnLine, on_end: Callable[[], None]) -> None:
        """Call ``on_line`` for each record and ``on_end`` once when the peer has gone."""

        def ready() -> None:
            for record, payload in lines.read():
                on_line(record, payload)
            if lines.ended:
                self.forget(lines)
                on_end()

        self._selector.register(lines, selectors.EVENT_READ, ready)

    def watch_handle(self, handle: Any, on_ready: Callable[[], None]) -> None:
        """Call ``on_ready`` whenever the handle can be read."""
        self._selector.register(handle, selectors.EVENT_READ, on_ready)

    def forget(self, handle: Any) -> None:
        """Watch it no more."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(handle)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Call ``action`` once, in so many seconds."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._count), action))

    def work(
        self, pool: str, threads: int, action: Callable[[], Any], then: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run ``action`` in one of the ``threads`` of ``pool``, then ``then(result, error)`` in the loop."""
        if pool not in self._pools:
            self._pools[pool] = ThreadPoolExecutor(threads, thread_name_prefix=pool)
        self.working += 1

        def finished(future: Future[Any]) -> None:
            error = future.exception()
            self._finished.append(lambda: self._finish(then, None if error else future.result(), error))
            self._awaken()

        self._pools[pool].submit(action).add_done_callback(finished)

    def _finish(
        self, then: Callable[[Any, BaseException | None], None], result: Any, error: BaseException | None
    ) -> None:
        self.working -= 1
        then(result, error)

    def _awaken(self) -> None:
        try:
            self._waker.send(b".")
        except (BlockingIOError, OSError):
            return  # it will wake anyway: there is something to read already, or the loop has ended

    def _awake(self) -> None:
        self._wake.recv(4096)

    def stop(self) -> None:
        """Let :meth:`run` return."""
        self._stopped = True

    def run(self) -> None:
        """Until :meth:`stop`."""
        while not self._stopped:
            while self._finished:
                self._finished.popleft()()
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
            if self._stopped or self._finished:
                continue
            timeout = self._timers[0][0] - time.monotonic() if self._timers else None
            for key, _ in self._selector.select(None if timeout is None else max(0.0, timeout)):
                key.data()

    def close(self) -> None:
        """Release what it holds; work that still runs is left alone."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        self._wake.close()
        self._waker.close()
