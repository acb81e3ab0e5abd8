"""One connection: a socket that never blocks, and where it is in connecting, asking and being answered."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from collections.abc import Callable
from typing import Protocol

from argosy.steps.store.base import StoreError
from argosy.steps.transfer.answers import Head, Malformed, Receiver
from argosy.steps.transfer.jobs import Again, Request
from argosy.steps.transfer.wire.bodies import LONGEST_HEAD, Body, body_of
from argosy.steps.transfer.wire.route import Route

IN, OUT = select.EPOLLIN, select.EPOLLOUT
_USUAL_HEAD = 4 << 10
BUFFER = 1 << 20
"""What is read at a time at most."""
TOGETHER = 256 << 10
"""What is waited for. More saves more system calls, but it is also what a kill loses per connection."""
_FEW = 64 << 10


class Owner(Protocol):
    """Has the event loop that connections live in."""

    poll: select.epoll
    buffer: memoryview
    now: float

    def share(self) -> int:
        """How many bytes may wait in a connection's socket until more have come."""

    def finished(self, connection: Connection) -> None:
        """The answer is whole; the connection is idle, or closed if it may not be used again. May raise nothing."""

    def hung_up(self, connection: Connection) -> None:
        """An idle connection was closed by the other side."""

    def lost(self, connection: Connection, error: Exception) -> None:
        """No answer, or not all of it: the connection is closed. StoreError, Again: because the receiver said so."""


class Connection:
    """Made connecting; one request at a time. Its owner calls ``step`` whenever the socket can go on."""

    wait: tuple[type[OSError], ...] = (BlockingIOError,)
    """What says that the socket has to be waited for."""
    keeps_rest = False
    """Whether bytes may be left, after the buffer was filled, that wake nobody."""
    connect_seconds = 10.0
    """How long it may take to reach the host."""
    hidden = 0
    """How many bytes of a body may have been taken from the socket and not yet been read."""

    __slots__ = (
        *("_address", "_body", "_events", "_most", "_out", "_owner", "_raw", "_together", "connected", "fd", "first"),
        *("idle", "keeps", "last", "number", "receiver", "route", "sent", "sock", "step", "used"),
    )

    def __init__(self, owner: Owner, route: Route) -> None:
        """Raises OSError: nobody to connect to."""
        self._owner, self.route = owner, route
        self._address = route.address()
        family, where = self._address
        self.sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self.fd = self.number = self.sock.fileno()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = self.sock.connect_ex(where)
        if error not in (0, errno.EINPROGRESS):
            route.avoid(self._address)
            self.sock.close()
            raise OSError(error, os.strerror(error))
        self.connected, self.idle, self.keeps, self.used = False, False, True, 0
        self.last = self.sent = self.first = owner.now
        self.receiver: Receiver | None = None
        self._out, self._raw = b"", b""
        self._body: Body | None = None
        self._together, self._most = 1, TOGETHER
        self._events = OUT
        owner.poll.register(self.fd, OUT)
        self.step: Callable[[], None] = self._connect

    def ask(self, request: Request, receiver: Receiver) -> None:
        """Send a request when connected; what comes goes to ``receiver``."""
        assert isinstance(request, bytes)
        self.receiver = receiver
        self._out, self._raw, self._body = request, b"", None
        self.idle = False
        self.last = self.sent = self.first = self._owner.now
        if self.connected:
            self._send()

    def close(self) -> None:
        """Give the socket back; twice is once."""
        if self.fd >= 0:
            self.fd = -1
            # Closing takes it out of the poll.
            self.sock.close()

    def give_up(self, error: Exception) -> None:
        """Close it, and say why the answer is lost."""
        self._lose(error)

    def wait_less(self) -> None:
        """Nothing was read for a while: what has come by now must not wait for more."""
        if self._together > 1:
            self._most //= 4
            self._wait_for(1)

    def _lose(self, error: Exception) -> None:
        if not self.connected:
            self.route.avoid(self._address)
        self.close()
        self._owner.lost(self, error)

    def _await(self, events: int) -> None:
        if events != self._events:
            self._events = events
            self._owner.poll.modify(self.fd, events)

    # ---- connecting

    def _connect(self) -> None:
        error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._lose(OSError(error, os.strerror(error)))
        elif self.route.tunnel:
            self._raw = b""
            self._ask_proxy()
        else:
            self._reached()

    def _ask_proxy(self) -> None:
        try:
            self.sock.sendall(self.route.tunnel)
        except OSError as error:
            self._lose(error)
            return
        self.step = self._hear_proxy
        self._await(IN)

    def _hear_proxy(self) -> None:
        try:
            # Byte by byte would be exact; a proxy says nothing behind its head before we speak.
            some = self.sock.recv(LONGEST_HEAD)
            self._raw += some
            if not some or len(self._raw) > LONGEST_HEAD:
                raise ConnectionError("the proxy hung up")
            raw, end, rest = self._raw.partition(b"\r\n\r\n")
            if not end:
                return
            status = Head(raw).status
            if status != 200 or rest:
                raise ConnectionError(f"the proxy answered {status} to CONNECT")
        except (OSError, Malformed) as error:
            self._lose(error)
            return
        self._raw = b""
        self._reached()

    def _reached(self) -> None:
        """The host is at the other end now."""
        self._established()

    def _established(self) -> None:
        self.connected = True
        self.last = self.sent = self.first = self._owner.now
        if self.receiver is not None:
            self._send()
        else:
            self.step = self._disturbed
            self._await(IN)

    # ---- asking and being answered

    def _send(self) -> None:
        try:
            self._out = self._out[self.sock.send(self._out) :]
        except self.wait:
            pass
        except OSError as error:
            self._lose(error)
            return
        self.step = self._send if self._out else self._receive
        self._await(OUT if self._out else IN)

    def _receive(self) -> None:
        more = True
        while more:
            try:
                count = self._read()
            except self.wait:
                return
            except OSError as error:
                self._lose(error)
                return
            self.last = self._owner.now
            try:
                whole = self._feed(self._owner.buffer[:count]) if count else self._closed()
            except (Malformed, ConnectionError, StoreError, Again) as error:
                self._lose(error)
                return
            more = not whole and self.keeps_rest and count == len(self._owner.buffer)
        if whole:
            self._wait_for(1)
            self._answered()
        else:
            self._gather(count)

    def _gather(self, count: int) -> None:
        """Wake up when much has come, not for each segment: every waking costs as much as some 100 KiB."""
        if count >= self._most:
            self._most = min(2 * self._most, TOGETHER)
        sure = self._body.missing - self.hidden if self._body is not None else 0
        if sure > _FEW or self._together > 1:
            self._wait_for(max(1, min(sure, self._most, self._owner.share())))

    def _wait_for(self, count: int) -> None:
        if count != self._together:
            self._together = count
            with contextlib.suppress(OSError):
                # https://man7.org/linux/man-pages/man7/socket.7.html: the end of the stream wakes all the same.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _read(self) -> int:
        """Fill the owner's buffer; 0 at the end."""
        return self.sock.recv_into(self._owner.buffer)

    def _feed(self, data: memoryview) -> bool:
        """Whether the answer is whole now."""
        receiver = self.receiver
        assert receiver is not None
        used = 0
        if self._body is None:
            if self.first == self.sent:
                self.first = self._owner.now
            used = self._parse_head(data, receiver)
            if self._body is None:
                return False
        if used < len(data) and not self._body.ended:
            used += self._body.feed(data[used:], receiver.body)
        if used < len(data):
            self.keeps = False
        return self._body.ended

    def _parse_head(self, data: memoryview, receiver: Receiver) -> int:
        """Bytes of ``data`` that belong to the head; interim answers are skipped."""
        before = len(self._raw)
        # Most heads are short, and what is behind them need not be copied.
        for most in (_USUAL_HEAD, LONGEST_HEAD):
            at, some = 0, self._raw + bytes(data[:most])
            while (end := some.find(b"\r\n\r\n", at)) >= 0:
                head = Head(some[at:end])
                at = end + 4
                if head.status >= 200:
                    self._raw = b""
                    self._body, self.keeps = body_of(head, receiver.method), head.keeps
                    receiver.head(head)
                    return at - before
            if most >= len(data):
                break
        if len(some) - at >= LONGEST_HEAD:
            raise Malformed("an answer's head is too long")
        self._raw = some[at:]
        return len(data)

    def _closed(self) -> bool:
        self.keeps = False
        if self._body is not None and self._body.closed():
            return True
        raise ConnectionError("the connection ended before the answer did")

    def _answered(self) -> None:
        self.used += 1
        if self.keeps:
            self.idle = True
            self.step = self._disturbed
        else:
            self.close()
        self._owner.finished(self)

    def _disturbed(self) -> None:
        """Nothing was asked, and yet something comes: mostly the end."""
        self.keeps = self.idle = False
        self.close()
        self._owner.hung_up(self)
