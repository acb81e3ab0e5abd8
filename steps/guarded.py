"""An HTTP server that strangers cannot use up. Standard library only."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

STRANGERS = 128
"""Connections that have not shown who they are; one more ends the oldest, so that nobody uses up our descriptors."""
SOCKET_SECONDS = 60.0


class GuardedServer(ThreadingHTTPServer):
    """Its handlers are :class:`GuardedHandler`."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], handler: type[GuardedHandler]) -> None:
        """Bind at once. Raises: OSError: the port is taken."""
        self._strangers: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without asking a name server who we are, as http.server does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]  # of an AF_INET

    def came(self, connection: socket.socket) -> None:
        """Count a connection that has not shown who it is."""
        with self._lock:
            self._strangers[connection] = None
            surplus = next(iter(self._strangers)) if len(self._strangers) > STRANGERS else None
            if surplus is not None:
                del self._strangers[surplus]
                # Its thread sees the end of file and closes it.
                with contextlib.suppress(OSError):
                    surplus.shutdown(socket.SHUT_RDWR)

    def known(self, connection: socket.socket) -> None:
        """Stop counting a connection: it has shown who it is, or is gone."""
        with self._lock:
            self._strangers.pop(connection, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print it, unless the other side went away: that is the watch's matter."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"argosy: {self.server_address[1]}: {error!r}", file=sys.stderr)


class GuardedHandler(BaseHTTPRequestHandler):
    """A connection, counted from its first moment."""

    protocol_version = "HTTP/1.1"
    server: GuardedServer
    timeout = SOCKET_SECONDS

    def setup(self) -> None:
        """Count it."""
        self.server.came(self.request)
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def finish(self) -> None:
        """Count it no longer."""
        self.server.known(self.connection)
        super().finish()

    def answer(self, status: int, data: bytes, media_type: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: each pod sends two requests a second."""


class Serving:
    """A server in threads of its own; use as a context manager."""

    def __init__(self, server: GuardedServer, name: str) -> None:
        """``server`` is bound already; ``name`` is its thread's."""
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.1,), name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
