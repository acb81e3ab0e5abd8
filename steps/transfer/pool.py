"""Worker processes that fetch pieces at the same time, and are replaced when they die."""

from __future__ import annotations

import selectors
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Self

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer.lines import ARRIVED, FAILED, SLOWER, TAKEN, result_of
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.processors import usable, workers_for
from argosy.steps.transfer.transport import say_taken
from argosy.steps.transfer.worker_process import WorkerProcess

_DEATHS = 3
"""A piece that so many workers died with is given up: it may be what kills them."""
_REQUESTS = 1024
"""At a time, of all workers together."""
_LEAST_REQUESTS, _MOST_REQUESTS = 128, 512
"""What each may have, be they many or few."""
_DYING_SECONDS = 1.0
"""From the end of a worker's answers to its own."""
Result = Arrived | Failed


class FetchPool:
    """Fetches pieces of the store at ``uri`` into files of the folder whose descriptor is ``parts``.

    A context manager; leaving it ends the workers, whatever they are at. For one thread at a time. Each submitted
    piece gives exactly one result, in any order.
    """

    def __init__(self, uri: str, parts: int, *, workers: int | None = None) -> None:
        """``workers``: how many processes; None: as many as the processors and the store make sense of."""
        self._uri, self._parts = uri, parts
        self._count = workers_for(uri, usable()) if workers is None else max(1, workers)
        self._most = min(_MOST_REQUESTS, max(_LEAST_REQUESTS, _REQUESTS // self._count))
        self._workers: list[WorkerProcess] = []
        self._waiting: deque[Piece] = deque()
        self._done: list[Result] = []
        self._deaths: Counter[int] = Counter()
        self._stillborn = 0
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        try:
            for _ in range(self._count):
                self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        self._selector.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that live now."""
        return tuple(worker.pid for worker in self._workers)

    @property
    def bytes_in_flight(self) -> int:
        """Bytes that have come of pieces that are not done, as the workers told lately."""
        return sum(worker.under_way for worker in self._workers)

    def room(self) -> int:
        """How many more pieces it wants now, so that no worker waits."""
        wanted = sum(worker.wanted for worker in self._workers)
        return max(0, wanted - len(self._waiting) - sum(len(worker.pieces) for worker in self._workers))

    def submit(self, pieces: Sequence[Piece]) -> None:
        """Fetch these, too; more than :meth:`room` only wait here."""
        self._waiting.extend(pieces)
        self._hand_out()

    def results(self, timeout: float) -> list[Result]:
        """What came since the last call, perhaps nothing; waits up to ``timeout`` seconds for something to happen.

        Raises:
            StoreError: ``native_crash``: no worker can be started.
        """
        if not self._done:
            self._turn(timeout)
        done, self._done = self._done, []
        return done

    def _turn(self, timeout: float) -> None:
        for key, events in self._selector.select(timeout):
            worker: WorkerProcess = key.data
            if events & selectors.EVENT_READ and worker in self._workers:
                rows, ended = worker.rows()
                for row in rows:
                    self._take(worker, row)
                if ended:
                    self._replace(worker)
        self._hand_out()

    def _take(self, worker: WorkerProcess, row: list[Any]) -> None:
        worker.spoke = True
        if row[0] in (ARRIVED, FAILED):
            if worker.take_back(row[1]) is not None:
                self._deaths.pop(row[1], None)
                self._done.append(result_of(row))
        elif row[0] == SLOWER:
            # One prefix has one budget: what one worker was told holds for all.
            for other in self._workers:
                if other is not worker:
                    other.slow_down()
        elif row[0] == TAKEN:
            say_taken(self._uri, row[1])
        else:
            _, worker.limit, worker.under_way = row

    def _hand_out(self) -> None:
        while self._waiting and (hungry := [worker for worker in self._workers if worker.hungry]):
            min(hungry, key=lambda one: (one.bytes, len(one.pieces))).give(self._waiting.popleft())
        for worker in self._workers:
            self._watch_tasks(worker, worker.flush())

    def _watch_tasks(self, worker: WorkerProcess, full: bool) -> None:
        watched = worker.tasks in self._selector.get_map()
        if full and not watched:
            self._selector.register(worker.tasks, selectors.EVENT_WRITE, worker)
        elif watched and not full:
            self._selector.unregister(worker.tasks)

    def _start(self) -> None:
        worker = WorkerProcess(self._uri, self._parts, self._most)
        self._workers.append(worker)
        self._selector.register(worker.told, selectors.EVENT_READ, worker)

    def _replace(self, worker: WorkerProcess) -> None:
        self._selector.unregister(worker.told)
        self._watch_tasks(worker, False)
        self._workers.remove(worker)
        how = worker.stop(_DYING_SECONDS)
        self._stillborn = 0 if worker.spoke else self._stillborn + 1
        if self._stillborn > _DEATHS * self._count and not worker.pieces:
            raise StoreError(Cause.NATIVE_CRASH, f"workers that read {self._uri} end before they begin ({how})")
        for piece in reversed(worker.pieces.values()):
            self._deaths[piece.number] += 1
            if self._deaths[piece.number] < _DEATHS:
                self._waiting.appendleft(piece)
                continue
            text = f"{_DEATHS} workers died while {piece.key!r} of {self._uri} was fetched (the last: {how})"
            self._done.append(Failed(piece.number, StoreError(Cause.NATIVE_CRASH, text)))
        self._start()
