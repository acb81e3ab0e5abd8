"""launch's end of the socket to its rank shims."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from argosy.steps.contract.weight import Weight
from argosy.steps.launch.wire import LineBuffer, decode, encode, listen
from argosy.steps.verdict.evidence import read_lines

_READ = 1 << 16
_LINE_BYTES = 8 << 20
_LOOK_SECONDS = 0.5
_RELEASE = {"type": "release"}


class RankHub:
    """Hands every record of a shim to ``on_record`` (in one thread) and speaks to all shims."""

    def __init__(self, folder: Path, on_record: Callable[[dict[str, Any]], None]) -> None:
        """Begin to listen."""
        self._on_record = on_record
        self._server = listen(folder)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ, None)
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, LineBuffer] = {}
        self._last_word: bytes = b""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="ranks", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """The root is known: shims that hold back may go, now and those that come."""
        self._say(_RELEASE, keep=True)

    def stacks(self) -> None:
        """Have each rank print its stacks and end, because they hang."""
        self._say({"type": "stacks"}, keep=False)

    def gang_step(self, step: int) -> None:
        """How far the gang is, for ranks that have a fault to come and tell no steps."""
        self._say({"type": "gang_step", "step": step}, keep=False)

    def drain(self, seconds: float) -> None:
        """Wait until every shim has hung up: then all that they told has arrived."""
        self._thread.join(0)
        waiter = threading.Event()
        left = seconds
        while left > 0 and self._clients:
            waiter.wait(0.01)
            left -= 0.01

    def close(self) -> None:
        """Stop listening and hang up."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for client in list(self._clients):
            client.close()
        self._server.close()
        self._selector.close()

    def _say(self, record: dict[str, Any], *, keep: bool) -> None:
        line = encode(record)
        with self._lock:
            if keep:
                self._last_word = line
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.sendall(line)

    def _serve(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(_LOOK_SECONDS):
                if key.fileobj is self._server:
                    self._accept()
                else:
                    self._read(key.fileobj)  # type: ignore[arg-type]  # registered below: a socket

    def _accept(self) -> None:
        try:
            client, _ = self._server.accept()
        except OSError:
            self._selector.unregister(self._server)
            return
        with self._lock:
            self._clients[client] = LineBuffer(_LINE_BYTES)
            if self._last_word:
                with contextlib.suppress(OSError):  # a shim that was killed meanwhile
                    client.sendall(self._last_word)
        self._selector.register(client, selectors.EVENT_READ)

    def _read(self, client: socket.socket) -> None:
        try:
            data = client.recv(_READ)
        except OSError:
            data = b""
        for line in self._clients[client].feed(data):
            record = decode(line)
            if record is not None:
                ending = record.get("ending")
                self._on_record(record)
                if ending is not None and _may_go(ending):
                    with contextlib.suppress(OSError):
                        client.sendall(encode(_RELEASE))
        if not data:
            self._selector.unregister(client)
            with self._lock:
                del self._clients[client]
            client.close()


def _may_go(ending: Mapping[str, Any]) -> bool:
    """Whether a shim that waits may leave: its rank did not merely lose a peer. Here the judge's rules are loaded."""
    if ending["stopped"] or ending["exit_code"] == 0:
        return False  # it does not wait
    said = read_lines(ending["tail"])
    return said is None or said.weight > Weight.MESSENGER
