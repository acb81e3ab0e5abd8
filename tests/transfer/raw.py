"""A server whose answers are the very bytes that a test wrote, and a proxy that logs what it is asked."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Self

Say = Callable[[int, bytes], "bytes | None"]
"""Number of the request (from 0) and its head; None: hang up without a word. What ends in HANG_UP closes behind it."""
HANG_UP = b"<hang up>"


class Listener:
    """Serves each connection in a thread of its own, on loopback; a context manager. ``connections``: how many came."""

    def __init__(self) -> None:
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class RawServer(Listener):
    """``asked`` are the heads of the requests."""

    def __init__(self, say: Say, tls: ssl.SSLContext | None = None) -> None:
        self._say, self._tls = say, tls
        self.asked: list[bytes] = []
        self._lock = threading.Lock()
        super().__init__()
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            while (head := read_head(connection)) is not None:
                with self._lock:
                    number = len(self.asked)
                    self.asked.append(head)
                said = self._say(number, head)
                if said is None:
                    return
                # Byte by byte at first: a head may arrive in any pieces.
                for at in range(min(len(said), 40)):
                    connection.sendall(said.removesuffix(HANG_UP)[at : at + 1])
                connection.sendall(said.removesuffix(HANG_UP)[40:])
                if said.endswith(HANG_UP):
                    return


def read_head(connection: socket.socket) -> bytes | None:
    data = b""
    while b"\r\n\r\n" not in data:
        some = connection.recv(65536)
        if not some:
            return None
        data += some
    return data


class Proxy(Listener):
    """Passes on absolute urls and CONNECT; ``asked`` are first lines, ``authorizations`` what came with them."""

    def __init__(self, refuse: bytes = b"", tls: ssl.SSLContext | None = None) -> None:
        self._refuse, self._tls = refuse, tls
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            while (head := read_head(connection)) is not None:
                first, *lines = head.decode("latin-1").split("\r\n")
                self.asked.append(first)
                self.authorizations += [line for line in lines if line.lower().startswith("proxy-authorization")]
                if self._refuse:
                    connection.sendall(self._refuse)
                elif first.startswith("CONNECT "):
                    self._tunnel(connection, first.split(" ")[1])
                    return
                else:
                    self._forward(connection, first, lines)

    def _tunnel(self, connection: socket.socket, to: str) -> None:
        host, _, port = to.rpartition(":")
        with socket.create_connection((host, int(port))) as onward:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            pairs = {connection: onward, onward: connection}
            while True:
                for ready in select.select(list(pairs), [], [])[0]:
                    some = ready.recv(65536)
                    if not some:
                        return
                    pairs[ready].sendall(some)

    def _forward(self, connection: socket.socket, first: str, lines: list[str]) -> None:
        method, url, version = first.split(" ")
        host, _, path = url.removeprefix("http://").partition("/")
        with socket.create_connection((host.partition(":")[0], int(host.partition(":")[2] or 80))) as onward:
            kept = [line for line in lines if line and not line.lower().startswith(("proxy-", "connection"))]
            onward.sendall("\r\n".join([f"{method} /{path} {version}", *kept, "Connection: close", "", ""]).encode())
            head = read_head(onward)
            assert head is not None
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            while len(head.partition(b"\r\n\r\n")[2]) < length:
                head += onward.recv(65536)
        connection.sendall(head)
