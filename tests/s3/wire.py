"""HTTP/1.1 as far as S3 clients speak it: one request at a time per connection, faults where the bytes go."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_plus

REASONS = {200: "OK", 204: "No Content", 206: "Partial Content", 304: "Not Modified", 100: "Continue"}


@dataclass
class Request:
    """One request; ``fault`` is what will go wrong with it ("" nothing)."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    fault: str = ""
    query: dict[str, str] = field(default_factory=dict)
    path: str = ""
    seen: Any = None
    """The server's record of this request."""

    def __post_init__(self) -> None:
        raw, _, query = self.target.partition("?")
        self.path = unquote(raw)
        for pair in query.split("&") if query else ():
            name, _, value = pair.partition("=")
            self.query[unquote_plus(name)] = unquote_plus(value)


@dataclass
class Answer:
    """One answer. ``headers`` without content-length; ``length``: of a body that is not sent (HEAD)."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None


@dataclass
class Sending:
    """How the answer goes out: ``keep`` bytes of the body (None: all), over ``seconds``, then perhaps a reset."""

    keep: int | None = None
    seconds: float = 0.0
    reset: bool = False


Served = tuple[Answer | None, Sending]
"""None: no answer at all, the connection is reset."""
Began = Callable[[Request], None]
Serve = Callable[[Request], Served | Awaitable[Served]]


class Connection(asyncio.Protocol):
    """Parses requests and writes answers; ``began`` is told of a request when its head is there."""

    def __init__(self, began: Began, serve: Serve, open_ones: set[Connection]) -> None:
        self._began, self._serve, self._open = began, serve, open_ones
        self._buffer = bytearray()
        self._request: Request | None = None
        self._missing = 0
        self._busy = False
        self._task: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def reset(self) -> None:
        """Close with RST: the other side sees a lost connection, not an end."""
        endpoint = self._transport.get_extra_info("socket")
        if endpoint is not None:
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _advance(self) -> None:
        if self._busy:
            return
        if self._request is None and not self._parse_head():
            return
        request = self._request
        assert request is not None
        if request.fault == "reset-request" and len(self._buffer) >= self._missing // 2:
            self.reset()
            return
        if len(self._buffer) < self._missing:
            return
        request.body = bytes(self._buffer[: self._missing])
        del self._buffer[: self._missing]
        self._request, self._busy = None, True
        served = self._serve(request)
        if isinstance(served, tuple):
            self._answer(request, served)
        else:
            self._task = asyncio.ensure_future(self._later(request, served))

    async def _later(self, request: Request, served: Awaitable[Served]) -> None:
        try:
            self._answer(request, await served)
        except BaseException:
            self.reset()
            raise

    def _parse_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines)
        request = Request(method, target, {name.lower(): value.strip() for name, _, value in pairs})
        self._missing = int(request.headers.get("content-length") or 0)
        self._began(request)
        self._request = request
        if request.headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _answer(self, request: Request, served: Served) -> None:
        answer, how = served
        if self._transport.is_closing():
            return
        if answer is None:
            self.reset()
            return
        length = len(answer.body) if answer.length is None else answer.length
        lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Refused')}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.status not in (204, 304):
            lines.append(f"content-length: {length}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        body = b"" if request.method == "HEAD" else answer.body[: how.keep]
        if how.seconds:
            self._task = asyncio.ensure_future(self._drip(request, head + body, how))
        else:
            self._transport.write(head + body)
            request.seen.served += len(body)
            self._after(how)

    async def _drip(self, request: Request, data: bytes, how: Sending) -> None:
        step = max(1, len(data) // 20)
        for at in range(0, len(data), step):
            self._transport.write(data[at : at + step])
            while self._transport.get_write_buffer_size() and not self._transport.is_closing():
                await asyncio.sleep(0.005)
            if self._transport.is_closing():
                return
            request.seen.served += len(data[at : at + step])
            await asyncio.sleep(how.seconds / 20)
        self._after(how)

    def _after(self, how: Sending) -> None:
        if how.reset:
            # What was written must leave first: a reset discards what the kernel still holds.
            asyncio.get_running_loop().call_later(0.005, self.reset)
            return
        self._busy = False
        if self._buffer:
            self._advance()
