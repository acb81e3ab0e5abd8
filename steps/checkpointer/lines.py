"""JSON objects over a stream socket, one per line, each with optional bytes behind it. No pickle."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Iterator, Sequence
from typing import Any

_READ = 1 << 20
_MAX_LINE = 64 << 20
SEND_SECONDS = 20.0
"""A peer that reads nothing for so long is gone, or as good as gone."""

Record = dict[str, Any]
Payload = list[bytes]


def ready(handle: Any, event: int, seconds: float) -> bool:
    """Wait for a handle; poll(2), because select(2) knows no handle above 1,023."""
    poll = select.poll()
    poll.register(handle, event)
    return bool(poll.poll(seconds * 1000))


class Lines:
    """One end of a connection; sends block for at most :data:`SEND_SECONDS`, reads only when asked to."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setblocking(False)
        self._buffer = bytearray()
        self.ended = False
        """The peer has closed; what it said before has been read."""

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def send(self, record: Record, payload: Sequence[bytes] = ()) -> None:
        """Send one record; ``payload`` arrives beside it, byte for byte.

        Raises:
            OSError: the peer is gone or does not read.
        """
        if payload:
            record = {**record, "payload": [len(part) for part in payload]}
        rest = memoryview(b"".join([json.dumps(record, separators=(",", ":")).encode(), b"\n", *payload]))
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                if not ready(self._socket, select.POLLOUT, SEND_SECONDS):
                    raise TimeoutError("the other side does not read") from None

    def try_send(self, record: Record) -> bool:
        """Send to a peer that may be gone; False when it is."""
        try:
            self.send(record)
        except OSError:
            self.ended = True
            return False
        return True

    def read(self) -> Iterator[tuple[Record, Payload]]:
        """What has arrived whole; never blocks. Garbage ends the connection."""
        while not self.ended:
            try:
                data = self._socket.recv(_READ)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.ended = True
            self._buffer += data
            if len(data) < _READ:
                break
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> tuple[Record, Payload] | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _MAX_LINE:
                self._fail()
            return None
        try:
            record = json.loads(self._buffer[:end])
            lengths = [int(length) for length in record.pop("payload", ())]
        except (ValueError, AttributeError, TypeError):
            self._fail()
            return None
        at = end + 1
        if len(self._buffer) < at + sum(lengths):
            return None
        payload = []
        for length in lengths:
            payload.append(bytes(self._buffer[at : at + length]))
            at += length
        del self._buffer[:at]
        return record, payload

    def _fail(self) -> None:
        self._buffer.clear()
        self.ended = True

    def hang_up(self) -> None:
        """Say that nothing more will be sent; what was sent still arrives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both ways."""
        self.ended = True
        self._socket.close()
