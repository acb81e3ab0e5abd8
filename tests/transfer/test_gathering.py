"""Bytes wait in the socket for more of them, but never for long, and never for what does not come."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from argosy.steps.transfer import loop
from argosy.steps.transfer.piece import Arrived, Piece
from tests.transfer.conftest import Folder
from tests.transfer.raw import Listener, read_head

BODY = bytes(range(251)) * 8000
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


class _Hesitant(Listener):
    """Sends the body up to each of ``stops``, and goes on when that much of it is in ``part``."""

    def __init__(self, part: Path, stops: Sequence[int], tls: ssl.SSLContext | None) -> None:
        self._part, self._stops, self._tls = part, stops, tls
        self.waited: list[float] = []
        self.done = threading.Event()
        super().__init__()
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            while read_head(connection) is not None:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        at = 0
        for stop in self._stops:
            connection.sendall(BODY[at:stop])
            at, began = stop, time.monotonic()
            while not (self._part.exists() and self._part.stat().st_size >= stop):
                if time.monotonic() - began > 20:
                    return
                self.done.wait(0.02)
            self.waited.append(time.monotonic() - began)
        connection.sendall(BODY[at:])


def context(certificate: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate.with_name("server.pem"))
    return made


@TLS
def test_what_came_is_written_before_the_rest_comes(
    folder: Folder, certificate: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setattr(loop, "PATIENCE_SECONDS", 0.2)
    stops = (300_000, 310_000, len(BODY) - 1)
    with _Hesitant(folder.path / "part", stops, context(certificate) if tls else None) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        told = folder.carry("s3://b", [Piece(0, "k", len(BODY), "", "", 0, len(BODY), "part")])
    assert isinstance(told[0], Arrived)
    assert folder.read("part") == BODY
    assert server.connections == 1
    assert len(server.waited) == len(stops)
    assert max(server.waited) < 5.0
