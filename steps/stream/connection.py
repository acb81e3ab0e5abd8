"""The script's end of its reader: ranges are asked for by many and received by one thread, into memory of ours."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argosy.steps.child_python import child_command, child_environ
from argosy.steps.contract.causes import Cause
from argosy.steps.store import StoreError
from argosy.steps.stream.reader import HEAD

_LIVES = 3
"""How often a reader that was killed (the kernel's out-of-memory killer likes it) is started again."""
_ANSWERS = 1000
"""A reader that gave so many was well: that it is killed again, weeks later, says nothing against starting another."""
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """A range of one version of an object, where it goes, and who is told."""

    key: str
    etag: str
    version: str
    start: int
    into: memoryview
    done: Callable[[StoreError | None], None]
    """Called once, by the receiving thread: with None when all bytes are there."""


class Connection:
    """A reader process and what it was asked for. Safe for threads; of one process: a fork makes its own."""

    def __init__(self, uri: str, threads: int) -> None:
        self._uri, self._threads = uri, threads
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._pending: dict[int, Request] = {}
        self._number = 0
        self._lives, self._answers = _LIVES, 0
        self._dead: StoreError | None = None
        self._socket, self._process = self._start()
        self._receiver = threading.Thread(target=self._receive, name="argosy-ranges", daemon=True)
        self._receiver.start()

    def submit(self, request: Request) -> None:
        """Ask; returns at once. Who asks a connection that has ended is told so."""
        with self._lock:
            dead = self._dead
            if dead is None:
                self._number += 1
                self._pending[self._number] = request
                self._send(self._number, request)
        if dead is not None:
            _tell([request], dead)

    def close(self) -> None:
        """End the reader; who waits for what is under way is told. In a forked child only its copies are closed."""
        if self._owner != os.getpid():
            self._socket.close()
            return
        self._end(StoreError(Cause.USER_EXCEPTION, f"{self._uri} was closed: nothing can be read from it any more"))
        with self._lock, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._receiver:
            self._receiver.join()
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the reader."""
        return self._process.pid

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        words = theirs.fileno(), os.getpid(), self._threads, self._uri
        process = subprocess.Popen(
            child_command("argosy.steps.stream.reader", *words),
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=child_environ(),
        )
        theirs.close()
        return ours, process

    def _send(self, number: int, request: Request) -> None:
        words = [number, request.key, request.etag, request.version, request.start, len(request.into)]
        with contextlib.suppress(OSError):  # it has died: the receiver sees that too and asks again
            self._socket.sendall(json.dumps(words).encode() + b"\n")

    def _receive(self) -> None:
        head, alive = bytearray(HEAD.size), True
        try:
            while alive:
                try:
                    self._fill(memoryview(head))
                    self._take(*HEAD.unpack(head))
                except (EOFError, OSError):
                    alive = self._revived()
        except Exception as error:  # who waits would wait for ever
            text = f"reading {self._uri} failed: {type(error).__name__}: {error}"
            self._end(StoreError(Cause.UNKNOWN, text, quote=text))

    def _fill(self, into: memoryview) -> None:
        while into:
            count = self._socket.recv_into(into)
            if not count:
                raise EOFError
            into = into[count:]

    def _take(self, number: int, length: int, wrong: bool) -> None:
        with self._lock:
            request = self._pending.get(number)
        if request is None:  # closed in between
            raise EOFError
        if wrong:
            said = bytearray(length)
            self._fill(memoryview(said))
            cause, message, quote = json.loads(said)
            error: StoreError | None = StoreError(Cause(cause), message, quote=quote)
        elif length != len(request.into):
            self._fill(memoryview(bytearray(length)))
            text = f"{self._uri}/{request.key}: {length} of {len(request.into)} bytes from {request.start} came"
            error = StoreError(Cause.DATA_CORRUPT, text)
        else:
            self._fill(request.into)
            error = None
            self._answers += 1
        request.done(error)
        with self._lock:  # only now: should that fail, it is told with all others
            self._pending.pop(number, None)

    def _ended(self) -> int:
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _revived(self) -> bool:
        with self._lock:
            if self._dead is not None:
                return False
            self._socket.close()
            code = self._ended()
            self._lives = (self._lives if self._answers < _ANSWERS else _LIVES) - 1
            self._answers = 0
            if self._lives > 0:
                self._socket, self._process = self._start()
                for number, request in self._pending.items():
                    self._send(number, request)
                return True
        text = f"the process that reads {self._uri} ended {_LIVES} times, the last time with {code}"
        self._end(StoreError(Cause.HOST_OOM if code == -9 else Cause.UNKNOWN, text, quote=text))
        return False

    def _end(self, error: StoreError) -> None:
        with self._lock:
            self._dead = dead = self._dead or error
            lost, self._pending = list(self._pending.values()), {}
        _tell(lost, dead)


def _tell(requests: Sequence[Request], error: StoreError) -> None:
    # Once the main thread has ended only daemons wait, and go with the process: their traceback would stand behind
    # what it ended of.
    if threading.main_thread().is_alive():
        for request in requests:
            request.done(error)
