"""The process that asks the store: ``python -m argosy.steps.stream.reader SOCKET PARENT THREADS URI``.

A process of its own, so that receiving never holds the interpreter of a training script, and so that a script or a
loader's worker may fork at any time: the store's client has threads and connections that would not survive it.
A request is a line of JSON, [number, key, etag, version, start, length]; an answer is a head and bytes, or an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import socket
import struct
import sys
import threading

from argosy.steps.contract.causes import Cause
from argosy.steps.store import ObjectStore, StoreError, open_store

HEAD = struct.Struct("<QQ?")
"""Number of the request, bytes that follow, whether they are an error (JSON [cause, message, quote])."""

_Task = tuple[int, str, str, str, int, int]


class Reader:
    """Serves one socket with ``threads`` requests under way at most."""

    def __init__(self, handle: socket.socket, store: ObjectStore, threads: int) -> None:
        self._socket, self._store = handle, store
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._sending = threading.Lock()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"range-{number}", daemon=True).start()

    def run(self) -> None:
        """Until the script hangs up."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                self._tasks.put(tuple(json.loads(line)))

    def _work(self) -> None:
        while True:
            number, key, etag, version, start, length = self._tasks.get()
            wrong = False
            try:
                data = self._store.get_range(key, start, length, etag=etag, version=version)
            except Exception as error:
                wrong, data = True, _told(error)
            self._answer(HEAD.pack(number, len(data), wrong), data)

    def _answer(self, head: bytes, data: bytes) -> None:
        with self._sending:
            try:
                self._socket.sendall(head)
                self._socket.sendall(data)
            except OSError:  # the script has gone
                os._exit(0)


def _told(error: Exception) -> bytes:
    if isinstance(error, StoreError):
        return json.dumps([error.cause, str(error), error.quote]).encode()
    return json.dumps([Cause.UNKNOWN, f"reading failed: {type(error).__name__}: {error}", str(error)]).encode()


def _end_with(parent: int) -> None:
    # A process that the script forked may hold the socket open and outlive it.
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(parent)
        select.select([handle], [], [])
    os._exit(0)


def main() -> int:
    """Serve until the script ends."""
    handle, parent, threads, uri = sys.argv[1:]
    # Both reach every process of a pod or a terminal; the script decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    with contextlib.suppress(ConnectionError):
        Reader(socket.socket(fileno=int(handle)), open_store(uri), int(threads)).run()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
