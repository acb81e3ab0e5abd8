"""HTTP in front of the channel: bearer token, JSON, nothing else. Standard library only."""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import CHECK_IN, REPORT, CheckIn, Report
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.host import Endpoint
from argosy.steps.supervisor.channel import Channel, NotReady, Stranger

MAX_BODY_BYTES = 4 << 20
SOCKET_SECONDS = 60.0
STRANGERS = 128
"""Connections that have not shown the token; one more ends the oldest, so that nobody uses up our descriptors."""
BIND_SECONDS = 20.0
"""How long a supervisor waits for its recorded port: the one before it may still be dying."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], channel: Channel, token: str) -> None:
        self.channel = channel
        self.token = token
        self._strangers: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def came(self, connection: socket.socket) -> None:
        """A connection of whom we know nothing yet."""
        with self._lock:
            self._strangers[connection] = None
            surplus = next(iter(self._strangers)) if len(self._strangers) > STRANGERS else None
            if surplus is not None:
                del self._strangers[surplus]
                # Its thread sees the end of file and closes it.
                with contextlib.suppress(OSError):
                    surplus.shutdown(socket.SHUT_RDWR)

    def known(self, connection: socket.socket) -> None:
        """It has shown the token, or is gone."""
        with self._lock:
            self._strangers.pop(connection, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):  # a pod that went away is the watch's matter
            print(f"argosy: control channel: {error!r}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = SOCKET_SECONDS

    def setup(self) -> None:
        self.server.came(self.request)
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def finish(self) -> None:
        self.server.known(self.connection)
        super().finish()

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        answers: dict[str, Callable[[bytes], dict[str, Any]]] = {
            CHECK_IN: lambda raw: self.server.channel.answer_check_in(CheckIn.from_json(raw)),
            REPORT: lambda raw: self.server.channel.answer_report(Report.from_json(raw)),
        }
        answer = answers.get(self.path)
        if answer is None:
            return self._send(404, {"error": f"no such path; {CHECK_IN} and {REPORT}"})
        try:
            self._send(200, answer(body))
        except (ValueError, TypeError, AttributeError) as error:
            self._send(400, {"error": str(error)})
        except Stranger:
            self._send(410, {"error": "this pod belongs to no gang of this supervisor"})
        except NotReady:
            self._send(503, {"error": "the supervisor is starting"})
        except StepError as error:  # the store is away: the pod keeps the report and sends it again
            self._send(503, {"error": str(error)})

    def _body(self) -> bytes | None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self.close_connection = True
            self._send(401, {"error": "wrong token"})
            return None
        self.server.known(self.connection)
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 12) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._send(413, {"error": f"a body of at most {MAX_BODY_BYTES} bytes with its length"})
            return None
        return self.rfile.read(int(length))

    def _send(self, status: int, record: dict[str, Any]) -> None:
        data = json.dumps(record).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: each pod sends two requests a second."""


class ChannelServer:
    """Serves a channel in threads of its own; use as a context manager."""

    def __init__(self, endpoint: Endpoint, channel: Channel) -> None:
        """Bind at once.

        Raises:
            StepError: the port stays taken (address_in_use).
        """
        self._channel = channel
        self._server = _bind(endpoint, channel)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="channel", daemon=True)

    def __enter__(self) -> ChannelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _bind(endpoint: Endpoint, channel: Channel) -> _Server:
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        try:
            return _Server((endpoint.host, endpoint.port), channel, endpoint.token)
        except OSError as error:
            if time.monotonic() > deadline:
                text = f"control channel: port {endpoint.port} of {endpoint.host} is taken: {error.strerror}"
                raise StepError(Cause.ADDRESS_IN_USE, text, quote=str(error)) from error
            time.sleep(0.1)
