"""The worker of stores whose client blocks: threads that fetch a piece each."""

from __future__ import annotations

import os
import queue
import threading
import traceback
from collections.abc import Callable

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.transfer.lines import now_line, parse_task, result_line
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.sink import Sink

TELL_SECONDS = 0.25
Fetch = Callable[[Sink], None]
"""Bring all bytes of the sink's piece into it, or raise StoreError."""


class Threads:
    """Reads pieces from ``tasks`` until its end, fetches ``limit`` at a time, writes what came of them to ``told``."""

    def __init__(self, fetch: Fetch, parts: int, limit: int) -> None:
        self._fetch, self._parts, self._limit = fetch, parts, limit
        self._queue: queue.SimpleQueue[Piece] = queue.SimpleQueue()
        self._flying: set[Sink] = set()
        self._lock = threading.Lock()

    def run(self, tasks: int, told: int) -> None:
        """Return when ``tasks`` ends: what is under way then is nobody's any more."""
        self._told = told
        self._tell(now_line(self._limit, 0))
        for target in [self._work] * self._limit + [self._report]:
            threading.Thread(target=target, daemon=True).start()
        with os.fdopen(tasks, "rb", closefd=False) as lines:
            for line in lines:
                piece = parse_task(line)
                if piece is not None:
                    self._queue.put(piece)

    def _tell(self, line: bytes) -> None:
        with self._lock:
            while line:
                line = line[os.write(self._told, line) :]

    def _report(self) -> None:
        pause = threading.Event()
        while not pause.wait(TELL_SECONDS):
            self._tell(now_line(self._limit, sum(sink.arrived for sink in tuple(self._flying))))

    def _work(self) -> None:
        while True:
            piece = self._queue.get()
            result: Arrived | Failed
            try:
                result = self._arrive(piece)
            except StoreError as error:
                result = Failed(piece.number, error)
            except BaseException:
                # The pool would wait for ever. It starts another process, and gives up a piece that ends several.
                traceback.print_exc()
                os._exit(1)
            self._tell(result_line(result))

    def _arrive(self, piece: Piece) -> Arrived:
        sink = Sink(self._parts, piece)
        self._flying.add(sink)
        try:
            self._fetch(sink)
            sink.close()
        finally:
            self._flying.discard(sink)
            sink.abandon()
        if sink.arrived != piece.length:
            text = f"object {piece.key!r}: {sink.arrived} bytes from {piece.start} came, not {piece.length}"
            raise StoreError(Cause.DATA_CORRUPT, text)
        return Arrived(piece.number, sink.running.values())
