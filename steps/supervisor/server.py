"""HTTP in front of the channel: bearer token, JSON, nothing else. Standard library only."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import CHECK_IN, REPORT, CheckIn, Report
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.host import Endpoint
from argosy.steps.guarded import GuardedHandler, GuardedServer, Serving
from argosy.steps.supervisor.channel import Channel, NotReady, Stranger

MAX_BODY_BYTES = 4 << 20
BIND_SECONDS = 20.0
"""How long a supervisor waits for its recorded port: the one before it may still be dying."""


class _Server(GuardedServer):
    def __init__(self, address: tuple[str, int], channel: Channel, token: str) -> None:
        self.channel = channel
        self.token = token
        super().__init__(address, _Handler)


class _Handler(GuardedHandler):
    server: _Server

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
        self.answer(status, json.dumps(record).encode(), "application/json")


class ChannelServer(Serving):
    """Serves a channel."""

    def __init__(self, endpoint: Endpoint, channel: Channel) -> None:
        """Bind at once.

        Raises:
            StepError: the port stays taken (address_in_use).
        """
        self._channel = channel
        super().__init__(_bind(endpoint, channel), "channel")

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        super().__exit__()


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
