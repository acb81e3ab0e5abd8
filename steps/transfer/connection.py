"""One connection: a socket that never blocks, and where it is in connecting, asking and being answered."""

from __future__ import annotations

import os
import select
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from argosy.steps.store.base import StoreError
from argosy.steps.transfer.jobs import Again
from argosy.steps.transfer.response import LONGEST_HEAD, Body, Head, Malformed, body_of
from argosy.steps.transfer.route import Route

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Receiver(Protocol):
    """Takes one answer. StoreError, Again or Malformed from any verb: the connection is closed, and its owner told."""

    method: str

    def head(self, head: Head) -> None:
        """The answer's head."""

    def body(self, data: memoryview) -> None:
        """Bytes of the body, which are gone when this returns."""


class Owner(Protocol):
    """Has the event loop that connections live in."""

    poll: select.epoll
    buffer: memoryview
    now: float

    def finished(self, connection: Connection) -> None:
        """The answer is whole; the connection is idle, or closed if it may not be used again. May raise nothing."""

    def hung_up(self, connection: Connection) -> None:
        """An idle connection was closed by the other side."""

    def lost(self, connection: Connection, error: Exception) -> None:
        """No answer, or not all of it: the connection is closed. StoreError, Again: because the receiver said so."""


class Connection:
    """Made connecting; one request at a time. Its owner calls ``step`` whenever the socket can go on."""

    __slots__ = (
        *("_address", "_body", "_events", "_head", "_out", "_owner", "_raw", "_read", "connected", "fd", "first"),
        *("idle", "keeps", "last", "number", "receiver", "route", "sent", "sock", "step", "used"),
    )

    def __init__(self, owner: Owner, route: Route) -> None:
        """Raises OSError: nobody to connect to."""
        self._owner, self.route = owner, route
        self._address = route.address()
        family, where = self._address
        self.sock: socket.socket = socket.socket(
            family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        self.fd = self.number = self.sock.fileno()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.connect_ex(where)
        self.connected, self.idle, self.keeps, self.used = False, False, True, 0
        self.last = self.sent = self.first = owner.now
        self.receiver: Receiver | None = None
        self._out, self._raw = b"", b""
        self._head: Head | None = None
        self._body: Body | None = None
        self._read: Callable[[], int] = self._read_plain
        self._events = _OUT
        owner.poll.register(self.fd, _OUT)
        self.step: Callable[[], None] = self._connect

    def ask(self, request: bytes, receiver: Receiver) -> None:
        """Send a request when connected; what comes goes to ``receiver``."""
        self.receiver = receiver
        self._out, self._raw, self._head, self._body = request, b"", None, None
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
            self._secure()

    def _ask_proxy(self) -> None:
        try:
            self.sock.sendall(self.route.tunnel)
        except OSError as error:
            self._lose(error)
            return
        self.step = self._hear_proxy
        self._await(_IN)

    def _hear_proxy(self) -> None:
        try:
            # Byte by byte would be exact; a proxy says nothing behind its head before we speak.
            some = self.sock.recv(LONGEST_HEAD)
            self._raw += some
            if not some or len(self._raw) > LONGEST_HEAD:
                raise Malformed("the proxy hung up")
            raw, end, rest = self._raw.partition(b"\r\n\r\n")
            if not end:
                return
            status = Head(raw).status
            if status != 200 or rest:
                raise Malformed(f"the proxy answered {status} to CONNECT")
        except (OSError, Malformed) as error:
            self._lose(error)
            return
        self._raw = b""
        self._secure()

    def _secure(self) -> None:
        context = self.route.context
        if context is None:
            self._established()
            return
        try:
            self.sock = context.wrap_socket(
                self.sock,
                do_handshake_on_connect=False,
                server_hostname=self.route.host,
                session=self.route.session,
            )
        except (OSError, ValueError) as error:
            self._lose(error)
            return
        self.step = self._shake_hands
        self._shake_hands()

    def _shake_hands(self) -> None:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._await(_IN)
        except ssl.SSLWantWriteError:
            self._await(_OUT)
        except OSError as error:
            self._lose(error)
        else:
            self._read = self._read_secure
            self._established()

    def _established(self) -> None:
        self.connected = True
        self.last = self.sent = self._owner.now
        if self.receiver is not None:
            self._send()
        else:
            self.step = self._disturbed
            self._await(_IN)

    # ---- asking and being answered

    def _send(self) -> None:
        try:
            self._out = self._out[self.sock.send(self._out) :]
        except _WAIT:
            pass
        except OSError as error:
            self._lose(error)
            return
        self.step = self._send if self._out else self._receive
        self._await(_OUT if self._out else _IN)

    def _receive(self) -> None:
        more = True
        while more:
            try:
                count = self._read()
            except _WAIT:
                return
            except OSError as error:
                self._lose(error)
                return
            self.last = self._owner.now
            try:
                whole = self._feed(self._owner.buffer[:count]) if count else self._closed()
            except (Malformed, StoreError, Again) as error:
                self._lose(error)
                return
            # A full buffer: TLS may have kept the rest, and what it has wakes nobody.
            more = not whole and count == len(self._owner.buffer) and self.route.secure
        if whole:
            self._answered()

    def _read_plain(self) -> int:
        return self.sock.recv_into(self._owner.buffer)

    def _read_secure(self) -> int:
        """As many records as there are: each is small, and what stays inside TLS wakes nobody."""
        sock, buffer, count = self.sock, self._owner.buffer, 0
        assert isinstance(sock, ssl.SSLSocket)
        try:
            while count < len(buffer) and (got := sock.recv_into(buffer[count:])):
                count += got
        except _WAIT:
            if not count:
                raise
        except OSError:
            if not count:
                raise
        return count

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
        before, some = len(self._raw), self._raw + bytes(data[:LONGEST_HEAD])
        at = 0
        while (end := some.find(b"\r\n\r\n", at)) >= 0:
            head = Head(some[at:end])
            at = end + 4
            if head.status >= 200:
                self._raw = b""
                self._head, self._body, self.keeps = head, body_of(head, receiver.method), head.keeps
                receiver.head(head)
                return at - before
        if len(some) - at >= LONGEST_HEAD:
            raise Malformed("an answer's head is too long")
        self._raw = some[at:]
        return len(data)

    def _closed(self) -> bool:
        self.keeps = False
        if self._body is not None and self._body.closed():
            return True
        raise Malformed("the connection ended before the answer did")

    def _answered(self) -> None:
        self.used += 1
        if self.route.secure and self.route.session is None:
            assert isinstance(self.sock, ssl.SSLSocket)
            self.route.session = self.sock.session
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
