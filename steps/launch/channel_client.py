"""The pod's side of the control channel: JSON over HTTP with a bearer token, standard library only."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from argosy.steps.address import own_address
from argosy.steps.contract.channel import (
    CHECK_IN,
    LONG_POLL_SECONDS,
    REPORT,
    Assignment,
    CheckIn,
    Orders,
    Report,
    StandBy,
)
from argosy.steps.contract.errors import InputError

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 15.0


class ChannelAway(Exception):
    """The supervisor cannot be reached or did not answer sensibly; try again."""


class ChannelRefused(Exception):
    """The supervisor knows this pod no longer: another gang has the run."""


class ChannelClient:
    """Not thread-safe: the check-in loop and the reporter each have their own."""

    def __init__(self, url: str, token: str) -> None:
        """``url``: ``http://host:port``.

        Raises:
            InputError: another scheme, or no host and port.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or not parts.port:
            raise InputError(f"channel url = {url!r}: http://HOST:PORT is expected")
        self.url = url
        self.host, self._port = parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._token = token
        self._connection: http.client.HTTPConnection | None = None

    def own_address(self) -> str:
        """Address of this pod as seen on the way to the supervisor.

        Raises:
            ChannelAway: the supervisor's name does not resolve yet.
        """
        try:
            return own_address(self.host, self._port)
        except OSError as error:
            raise ChannelAway(f"{self.url}: {error}") from error

    def check_in(self, message: CheckIn) -> Assignment | Orders | StandBy | None:
        """One long poll: an assignment, orders to exit, what to make ready without a rank, or None (ask again)."""
        record = self._post(CHECK_IN, message.to_json(), LONG_POLL_SECONDS + _ANSWER_SECONDS)
        try:
            if record.get("wait"):
                return StandBy.from_json(record["stand_by"]) if "stand_by" in record else None
            return Orders.from_json(record) if "command" in record else Assignment.from_json(record)
        except ValueError as error:
            raise ChannelAway(f"{self.url}: an assignment that cannot be read: {error}") from error

    def report(self, message: Report) -> Orders:
        """Deliver news, get orders."""
        record = self._post(REPORT, message.to_json(), _ANSWER_SECONDS)
        try:
            return Orders.from_json(record)
        except ValueError as error:
            raise ChannelAway(f"{self.url}: orders that cannot be read: {error}") from error

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, path: str, body: bytes, seconds: float) -> dict[str, Any]:
        fresh = self._connection is None
        try:
            return self._once(path, body, seconds)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            if fresh:
                raise ChannelAway(f"{self.url}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ChannelAway(f"{self.url}: {error}") from error
        # A kept connection that the supervisor closed meanwhile says nothing about the supervisor.
        return self._post(path, body, seconds)

    def _once(self, path: str, body: bytes, seconds: float) -> dict[str, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.host, self._port, timeout=_CONNECT_SECONDS)
            self._connection.connect()
        assert self._connection.sock is not None
        self._connection.sock.settimeout(seconds)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request("POST", self._base + path, body=body, headers=headers)
        answer = self._connection.getresponse()
        raw = answer.read()
        if answer.will_close:
            self.close()
        if answer.status in (401, 403, 410):
            raise ChannelRefused(f"{self.url}{path}: {answer.status} {raw[:200].decode(errors='replace')}")
        if answer.status != 200:
            raise ChannelAway(f"{self.url}{path}: {answer.status} {raw[:200].decode(errors='replace')}")
        try:
            record = json.loads(raw)
        except ValueError as error:
            raise ChannelAway(f"{self.url}{path}: an answer that is no JSON") from error
        if not isinstance(record, dict):
            raise ChannelAway(f"{self.url}{path}: an answer that is no JSON object")
        return record
