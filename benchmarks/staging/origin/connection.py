"""One connection: reads requests, writes replies, counts the very bytes that left.

The loop is asyncio's, the sockets are ours: a transport copies what it sends, and cannot say how much of a file had
gone when the other side died.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from benchmarks.staging.origin.catalogue import Reply
from benchmarks.staging.origin.content import pool
from benchmarks.staging.origin.site import Site

_SO_MAX_PACING_RATE = 47
_COPIED = 128 << 10
"""Bodies up to this go out with their head in one call; sendfile pays above."""
_READ = 256 << 10


class Connection:
    """Lives from accept until either side closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, site: Site) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if site.settings.rate:
            # The kernel keeps the rate: no timer of ours, and no burst.
            sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, int(site.settings.rate))
        self._loop, self._sock, self._site, self._fd = loop, sock, site, sock.fileno()
        self._received = b""
        self._body: bytearray | None = None
        self._head, self._wanted = b"", 0
        self._busy = False
        self._out: memoryview = memoryview(b"")
        self._offset = self._left = 0
        self._writing = self._last = False
        loop.add_reader(self._fd, self._readable)

    def _close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._sock.close()
        self._fd = -1

    def _readable(self) -> None:
        try:
            data = self._sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
        elif self._body is not None:
            self._body += data
            self._whole()
        else:
            self._received = self._received + data if self._received else data
            if not self._busy:
                self._next()

    def _next(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        self._busy = True
        self._head, self._received = self._received[: end + 2], self._received[end + 4 :]
        lowered = self._head.lower()
        self._last = b"\r\nconnection: close" in lowered
        if self._head.startswith((b"GET ", b"HEAD ")):
            self._reply(b"")
            return
        at = lowered.find(b"\r\ncontent-length:")
        self._wanted = int(lowered[at + 17 : lowered.index(b"\r\n", at + 2)]) if at >= 0 else 0
        self._body, self._received = bytearray(self._received), b""
        if b"\r\nexpect: 100-continue" in lowered:
            with contextlib.suppress(OSError):
                self._sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._whole()

    def _whole(self) -> None:
        assert self._body is not None
        if len(self._body) >= self._wanted:
            body, self._received = bytes(self._body[: self._wanted]), bytes(self._body[self._wanted :])
            self._body = None
            self._reply(body)

    def _reply(self, body: bytes) -> None:
        reply, after = self._site.answer(self._head, body)
        if after:
            self._loop.call_later(after, self._begin, reply)
        else:
            self._begin(reply)

    def _begin(self, reply: Reply) -> None:
        if self._fd < 0:
            return
        if 0 < reply.length <= _COPIED:
            self._out = memoryview(reply.head + pool().view[reply.offset : reply.offset + reply.length])
        else:
            self._out = memoryview(reply.head)
            self._offset, self._left = reply.offset, reply.length
        self._write()

    def _write(self) -> None:
        try:
            if self._out:
                sent = self._sock.send(self._out, socket.MSG_MORE if self._left else 0)
                self._out = self._out[sent:]
            elif self._left:
                sent = os.sendfile(self._fd, pool().fd, self._offset, self._left)
                self._offset, self._left = self._offset + sent, self._left - sent
            else:
                sent = 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close()
            return
        self._site.counters.sent += sent
        if self._out or self._left:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._write)
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._busy = False
        if self._last:
            self._close()
        elif self._received:
            self._next()
