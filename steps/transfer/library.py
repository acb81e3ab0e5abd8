"""A connection and the way to a host as awscrt has them: its HTTP, TLS and proxies in place of our own."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from argosy.steps.store.base import StoreError
from argosy.steps.store.s3_settings import S3Settings
from argosy.steps.transfer.answers import Head, Malformed, Receiver
from argosy.steps.transfer.jobs import Again, Request
from argosy.steps.transfer.library_signing import LibraryRequest
from argosy.steps.transfer.proxies import Proxy, proxy_for

_WINDOW = 256 << 10
"""Bytes of a body that the library may be ahead of us: what a kill loses per connection."""
_UNTRUSTED = "AWS_IO_TLS_ERROR_NEGOTIATION_FAILURE"
_numbers = itertools.count(-2, -1)


@cache
def _bootstrap() -> Any:
    from awscrt import io

    # One thread: each that calls back waits for Python's lock.
    threads = io.EventLoopGroup(1)
    return io.ClientBootstrap(threads, io.DefaultHostResolver(threads))


class LibraryRoute:
    """To the host of a bucket; the library looks up names and takes turns with their addresses.

    What the library's thread tells is put into a queue, and ``bell`` wakes whoever has the connections.
    """

    bell = -1

    def __init__(self, settings: S3Settings) -> None:
        """Raises StoreError for a proxy or certificates that cannot be used; no name is looked up yet."""
        parts = urlsplit(settings.base)
        self.host = parts.hostname or ""
        self._trusted = settings.ca_bundle
        self._tls: Any = _tls(self._trusted) if parts.scheme == "https" else None
        self.port = parts.port or (443 if self._tls is not None else 80)
        self.proxy: Proxy | None = proxy_for(parts.scheme, self.host)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.told: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.watched = False

    def __del__(self) -> None:
        # Not before: the library's thread rings as long as it knows a connection.
        if self.bell >= 0:
            os.close(self.bell)

    def open(self) -> Future[Any]:
        """A connection in the future.

        Raises:
            OSError: the library does not even try.
        """
        from awscrt import http

        try:
            return http.HttpClientConnection.new(  # type: ignore[no-any-return]
                self.host,
                self.port,
                bootstrap=_bootstrap(),
                tls_connection_options=self._tls_to(self.host),
                proxy_options=self._through(),
                manual_window_management=True,
                initial_window_size=_WINDOW,
            )
        except Exception as error:
            raise _said(error) from error

    def tell(self, what: Callable[[], None]) -> None:
        """Have it called by whoever has the connections; from any thread."""
        self.told.put(what)
        os.eventfd_write(self.bell, 1)

    def hear(self) -> None:
        """Call what was told."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.bell)
        while not self.told.empty():
            self.told.get()()

    def _tls_to(self, host: str) -> Any:
        if self._tls is None:
            return None
        options = self._tls.new_connection_options()
        options.set_server_name(host)
        return options

    def _through(self) -> Any:
        proxy = self.proxy
        if proxy is None:
            return None
        from awscrt import http

        kinds = http.HttpProxyAuthenticationType
        to_proxy = None
        if proxy.secure:
            to_proxy = (self._tls or _tls(self._trusted)).new_connection_options()
            to_proxy.set_server_name(proxy.host)
        return http.HttpProxyOptions(
            proxy.host,
            proxy.port,
            tls_connection_options=to_proxy,
            auth_type=kinds.Basic if proxy.user else kinds.Nothing,
            auth_username=proxy.user or None,
            auth_password=proxy.password or None,
        )


def _tls(ca_bundle: str) -> Any:
    from awscrt import io

    from argosy.steps.transfer.trust import trusted_file

    options = io.TlsContextOptions()
    if trusted := trusted_file(ca_bundle):
        options.override_default_trust_store_from_path(None, trusted)
    return io.ClientTlsContext(options)


class LibraryConnection:
    """What :class:`argosy.steps.transfer.wire.connection.Connection` is to its owner, carried by the library."""

    connect_seconds = 40.0
    """The library gives up by itself; what is wrong with a certificate it tells after 10 to 30 s."""

    def __init__(self, owner: Any, route: LibraryRoute) -> None:
        self._owner, self.route = owner, route
        if not route.watched:
            route.watched = True
            owner.watch(route.bell, route.hear)
        self.number = next(_numbers)
        self.fd = 0
        """Below 0: closed."""
        self.connected, self.used = False, 0
        self.last = self.sent = self.first = owner.now
        self._request: LibraryRequest | None = None
        self._receiver: Receiver | None = None
        self._keeps, self._turn = True, 0
        self._carried: Any = None
        route.open().add_done_callback(lambda made: route.tell(lambda: self._connect(made)))

    def ask(self, request: Request, receiver: Receiver) -> None:
        """Send a request when connected; what comes goes to ``receiver``."""
        assert isinstance(request, LibraryRequest)
        self._request, self._receiver = request, receiver
        self._turn += 1
        self.last = self.sent = self.first = self._owner.now
        if self.connected:
            self._send()

    def close(self) -> None:
        """Give the connection back; twice is once."""
        self.fd = -1
        self._receiver = None
        if self._carried is not None:
            self._carried.close()

    def give_up(self, error: Exception) -> None:
        """Close it, and say why the answer is lost."""
        self.close()
        self._owner.lost(self, error)

    def wait_less(self) -> None:
        """Nothing is held back here."""

    def step(self) -> None:
        """Never called: no descriptor of it is polled."""

    def _connect(self, made: Future[Any]) -> None:
        if made.exception() is not None:
            if self.fd >= 0:
                self.give_up(_said(made.exception()))
            return
        self._carried = made.result()
        if self.fd < 0:
            self._carried.close()
            return
        self.connected = True
        self.last = self.sent = self.first = self._owner.now
        self._carried.shutdown_future.add_done_callback(lambda _: self.route.tell(self._shut))
        if self._receiver is not None:
            self._send()

    def _shut(self) -> None:
        """The other side hung up; an answer that is under way says so by itself."""
        if self.fd >= 0 and self._receiver is None:
            self.close()
            self._owner.hung_up(self)

    def _send(self) -> None:
        request, turn = self._request, self._turn
        assert request is not None
        if request.signing is None:
            self._carry(request.http, turn)
            return
        from awscrt import auth

        signed = auth.aws_sign_request(request.http, request.signing)
        signed.add_done_callback(lambda done: self._carry(request.http, turn, done.exception()))

    def _carry(self, request: Any, turn: int, error: BaseException | None = None) -> None:
        """In any thread."""
        if error is not None:
            self._tell(turn, lambda: self.give_up(_said(error)))
            return
        try:
            stream = self._carried.request(
                request,
                lambda status_code, headers, **_: self._tell(turn, lambda: self._head(status_code, headers)),
                lambda http_stream, chunk, **_: self._tell(turn, lambda: self._body(http_stream, chunk)),
            )
            stream.completion_future.add_done_callback(lambda done: self._tell(turn, lambda: self._done(done)))
            stream.activate()
        except Exception as failed:
            why = _said(failed)
            self._tell(turn, lambda: self.give_up(why))

    def _tell(self, turn: int, what: Callable[[], None]) -> None:
        self.route.tell(lambda: self._hear(turn, what))

    def _hear(self, turn: int, what: Callable[[], None]) -> None:
        if self.fd < 0 or turn != self._turn:
            return
        self.last = self._owner.now
        try:
            what()
        except (Malformed, StoreError, Again) as error:
            self.give_up(error)

    def _head(self, status: int, headers: list[tuple[str, str]]) -> None:
        assert self._receiver is not None
        lines = [f"HTTP/1.1 {status} ", *(f"{name}: {value}" for name, value in headers)]
        head = Head("\r\n".join(lines).encode("latin-1", "replace"))
        self._keeps, self.first = head.keeps, self._owner.now
        self._receiver.head(head)

    def _body(self, stream: Any, chunk: bytes) -> None:
        assert self._receiver is not None
        self._receiver.body(memoryview(chunk))
        stream.update_window(len(chunk))

    def _done(self, done: Future[int]) -> None:
        error = done.exception()
        if error is not None:
            self.give_up(_said(error))
            return
        self.used += 1
        self._receiver = None
        if not self._keeps or not self._carried.is_open():
            self.close()
        self._owner.finished(self)


def _said(error: BaseException | None) -> OSError:
    name, text = getattr(error, "name", type(error).__name__), getattr(error, "message", str(error))
    if name == _UNTRUSTED:
        return OSError(f"CERTIFICATE_VERIFY_FAILED or no TLS at all: {text}")
    return OSError(f"{text} ({name})")
