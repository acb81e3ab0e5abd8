"""How the nodes of a gang make one Ray of theirs: node 0 tells where its head is, the others that they have joined.

Lines over TCP at the address that every node knows. Who connects says ``RANK KEY`` and is told Ray's address, says
``joined``, then ``lost PID`` for each worker that ends there. It hears ``end`` when the driver has ended well, ``first
PID`` when not, and a worker there was the first to end; a connection that closes without is a head that has gone.
"""

from __future__ import annotations

import contextlib
import hmac
import selectors
import socket
import time
from typing import Final

from argosy.steps.launch.wire import LineBuffer

END: Final = b"end"
FIRST: Final = b"first"
_JOINED = b"joined"
_LOST = b"lost"
_LATE_SECONDS = 60.0
"""Ray tells its driver of a lost worker within a few."""
_PAUSE_SECONDS = 0.2
_ANSWER_SECONDS = 30.0
_LINE_BYTES = 1 << 10


class Host:
    """Node 0's side."""

    def __init__(self, address: tuple[str, int], key: str, nnodes: int, told: str) -> None:
        """Listen; ``key`` is what the others of this restart know, ``told`` where Ray's head is.

        Raises:
            OSError: nobody can listen there.
        """
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._server = socket.create_server(address, family=family, backlog=nnodes)
        self._key = key.encode()
        self._awaited = set(range(1, nnodes))
        self._told = told.encode()
        self._losses: list[tuple[float, int, int]] = []
        self._ranks: dict[socket.socket, int] = {}
        self._lines: dict[socket.socket, LineBuffer] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)

    def listen(self, seconds: float) -> set[int]:
        """Hear the others for so long; those that have not joined yet.

        Raises:
            ConnectionError: a node that was joining hung up.
        """
        for ready, _ in self._selector.select(seconds):
            if ready.fileobj is self._server:
                self._accept()
            else:
                assert isinstance(ready.fileobj, socket.socket)
                self._hear(ready.fileobj)
        return self._awaited

    def lost(self, rank: int, pid: int) -> None:
        """A worker of the node ``rank`` has ended."""
        self._losses.append((time.monotonic(), rank, pid))

    def first(self) -> tuple[int, int] | None:
        """Node and pid of the worker that has ended lately before the others, which Ray then ends; None: all run."""
        late = time.monotonic() - _LATE_SECONDS
        return next(((rank, pid) for when, rank, pid in self._losses if when > late), None)

    def close(self, *, well: bool) -> None:
        """Tell the others that it is over, and how."""
        first = self.first()
        for connection in self._lines:
            with contextlib.suppress(OSError), connection:
                if well:
                    connection.sendall(END + b"\n")
                elif first is not None and first[0] == self._ranks.get(connection):
                    connection.sendall(FIRST + b" %d\n" % first[1])
        self._server.close()

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        connection.settimeout(_ANSWER_SECONDS)
        self._lines[connection] = LineBuffer()
        self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = connection.recv(_LINE_BYTES)
        for line in self._lines[connection].feed(data):
            if connection not in self._ranks:
                self._greet(connection, line)
            elif line == _JOINED:
                self._awaited.discard(self._ranks[connection])
            elif line.startswith(_LOST):
                self.lost(self._ranks[connection], int(line.split()[1]))
        if not data:
            self._selector.unregister(connection)
            if (rank := self._ranks.get(connection)) in self._awaited:
                raise ConnectionError(f"node {rank} of the gang left before its Ray had joined")

    def _greet(self, connection: socket.socket, line: bytes) -> None:
        rank, _, key = line.partition(b" ")
        if hmac.compare_digest(key, self._key) and rank.isdigit():
            self._ranks[connection] = int(rank)
            with contextlib.suppress(OSError):
                connection.sendall(self._told + b"\n")


class Guest:
    """The side of every other node."""

    def __init__(self, address: tuple[str, int], key: str, rank: int) -> None:
        """Connect, and wait as long as node 0 needs: the supervisor ends who waits in vain.

        Raises:
            ConnectionError: node 0 hung up.
        """
        while True:
            try:
                self._connection = socket.create_connection(address, timeout=_ANSWER_SECONDS)
                break
            except OSError:
                time.sleep(_PAUSE_SECONDS)
        self._connection.settimeout(None)
        self._lines = LineBuffer()
        self._say(f"{rank} {key}".encode())
        self.address = (self.hear(None) or b"").decode()
        """Where Ray's head is."""

    def joined(self) -> None:
        """This node's Ray is part of the head's."""
        self._say(_JOINED)

    def lost(self, pid: int) -> None:
        """A worker of this node has ended; a head that has gone is heard of otherwise."""
        with contextlib.suppress(OSError):
            self._say(_LOST + b" %d" % pid)

    def hear(self, seconds: float | None) -> bytes | None:
        """The next line, None: there was none in this time (None: no limit).

        Raises:
            ConnectionError: node 0 hung up.
        """
        self._connection.settimeout(seconds)
        while True:
            try:
                data = self._connection.recv(_LINE_BYTES)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionResetError("Connection closed by peer")
            for line in self._lines.feed(data):
                return line

    def _say(self, line: bytes) -> None:
        self._connection.settimeout(_ANSWER_SECONDS)
        self._connection.sendall(line + b"\n")
