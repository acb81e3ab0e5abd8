"""How writers find and trust each other: unix sockets within a node, TCP between nodes, one token for all.

The token is random and travels over torch.distributed; who does not know it is hung up on.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import time
from collections.abc import Callable

from argosy.steps.checkpointer.lines import Lines, Payload, Record
from argosy.steps.checkpointer.loop import Loop
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

Address = tuple[str, int]
_HELLO_SECONDS = 10.0
_CONNECT_SECONDS = 30.0


def node_socket_name(token: str, node: int) -> str:
    """Abstract unix socket of a node's leader: leaves no file, reaches only this network namespace."""
    return f"\0argosy-{hashlib.sha256(token.encode()).hexdigest()[:24]}-{node}"


def listen_node(token: str, node: int) -> socket.socket:
    """The leader's end."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(node_socket_name(token, node))
    server.listen(1024)
    return server


def listen_coordinator(host: str) -> socket.socket:
    """Listen on ``host``'s address, which is ours; where it is not (a Service's name) on every address."""
    if not host:
        return socket.create_server(("127.0.0.1", 0), backlog=4096)
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=4096)
    except OSError:
        return socket.create_server(("", 0), backlog=4096)


def own_address(server: socket.socket, host: str) -> Address:
    """Where others reach ``server``; ``host`` is rank 0's name as torchrun told everybody."""
    bound, port = server.getsockname()[:2]
    return (host if bound in ("0.0.0.0", "::") else bound), port


def connect(where: str | Address, token: str, rank: int, alone: Callable[[], bool]) -> Lines:
    """Connect and be welcomed; the other side may start a little later. ``alone``: nobody needs it any more.

    Raises:
        StepError: ``peer_lost``: it cannot be reached.
    """
    deadline = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            return _welcomed(where, token, rank)
        except OSError as error:
            if time.monotonic() > deadline or alone():
                place = "its node's writer" if isinstance(where, str) else f"the coordinator at {where[0]}:{where[1]}"
                text = f"the checkpoint writer of rank {rank} cannot reach {place}: {error}"
                raise StepError(Cause.PEER_LOST, text) from error
        time.sleep(0.02)


def _welcomed(where: str | Address, token: str, rank: int) -> Lines:
    if isinstance(where, str):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(where)
        except OSError:
            connection.close()
            raise
    else:
        connection = socket.create_connection(where, timeout=_HELLO_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.settimeout(_HELLO_SECONDS)
    try:
        connection.sendall(f'{{"token":"{token}","rank":{rank}}}\n'.encode())
        if connection.recv(1) != b"\n":
            raise ConnectionRefusedError("hung up on us")
    except OSError:
        connection.close()
        raise
    return Lines(connection)


class Peers:
    """The accepted side: every peer that showed the token."""

    def __init__(
        self,
        loop: Loop,
        server: socket.socket,
        token: str,
        on_line: Callable[[int, Record], None],
        on_end: Callable[[int], None],
    ) -> None:
        """``on_line(rank, record)`` and ``on_end(rank)``, where ``rank`` is the one the peer said it is."""
        self._loop = loop
        self._server = server
        self._token = token
        self._on_line = on_line
        self._on_end = on_end
        self._known: dict[int, Lines] = {}
        server.setblocking(False)
        loop.watch_handle(server, self._accept)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                if connection.family == socket.AF_UNIX and not _same_user(connection):
                    connection.close()
                    continue
                self._greet(connection)

    def _greet(self, connection: socket.socket) -> None:
        lines = Lines(connection)
        rank = -1

        def on_line(record: Record, _payload: Payload) -> None:
            nonlocal rank
            if rank >= 0:
                return self._on_line(rank, record)
            if not hmac.compare_digest(str(record.get("token", "")), self._token):
                lines.ended = True
                return
            rank = int(record["rank"])
            self._known[rank] = lines
            with contextlib.suppress(OSError):
                connection.sendall(b"\n")

        def on_end() -> None:
            lines.close()
            if rank >= 0 and self._known.pop(rank, None) is not None:
                self._on_end(rank)

        def overdue() -> None:
            if rank < 0 and not lines.ended:
                self._loop.forget(lines)
                lines.close()

        self._loop.watch(lines, on_line, on_end)
        self._loop.later(_HELLO_SECONDS, overdue)

    def tell(self, record: Record) -> None:
        """Tell every peer."""
        for lines in list(self._known.values()):
            lines.try_send(record)

    def close(self) -> None:
        """Hang up on everybody."""
        for lines in self._known.values():
            lines.hang_up()
        self._server.close()


def _same_user(connection: socket.socket) -> bool:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(raw[4:8], "little") in (os.getuid(), 0)
