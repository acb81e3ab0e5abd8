"""The way to a host: its addresses, the proxy before it, and how it is trusted."""

from __future__ import annotations

import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from argosy.steps.transfer.proxies import Proxy, proxy_for
from argosy.steps.transfer.transport import BeyondWire

if TYPE_CHECKING:
    import ssl

Address: TypeAlias = tuple[int, Any]
"""Family, and what connect() takes."""
FRESH_SECONDS = 60.0
_AVOID_SECONDS = 30.0


class Route:
    """To the host of a url. All addresses of the name are used in turn: S3 answers with a few of many."""

    def __init__(self, url: str, ca_bundle: str = "") -> None:
        """Raises StoreError for a proxy or certificates that cannot be used, BeyondWire for a proxy of another kind.

        No name is looked up yet.
        """
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        self.secure = parts.scheme == "https"
        self.port = parts.port or (443 if self.secure else 80)
        self.proxy: Proxy | None = proxy_for(parts.scheme, self.host)
        if self.proxy is not None and self.proxy.secure:
            raise BeyondWire("the proxy is spoken to over TLS")
        self.context = self._trusting(ca_bundle) if self.secure else None
        self.session: ssl.SSLSession | None = None
        self._addresses: list[Address] = []
        self._looked_up = 0.0
        self._avoided: dict[Any, float] = {}
        self._turn = 0
        self._asking: threading.Thread | None = None

    def _trusting(self, ca_bundle: str) -> ssl.SSLContext:
        from argosy.steps.transfer.trust import trusting  # TLS is slow to import, and seldom used within a cluster

        context = trusting(ca_bundle)
        context.set_alpn_protocols(["http/1.1"])
        return context

    @property
    def tunnel(self) -> bytes:
        """What asks the proxy for a way through, b"" where none is needed."""
        if self.proxy is None or not self.secure:
            return b""
        host = f"[{self.host}]" if ":" in self.host else self.host
        to = f"{host}:{self.port}"
        return f"CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n{self.proxy.header}\r\n".encode()

    def address(self) -> Address:
        """Where to connect to next.

        Raises:
            OSError: the name is not known now.
        """
        now = time.monotonic()
        if not self._addresses:
            self._look_up()
        elif now - self._looked_up > FRESH_SECONDS and (self._asking is None or not self._asking.is_alive()):
            # In a thread: a slow name server must not stop what is flowing.
            self._looked_up = now
            self._asking = threading.Thread(target=self._look_again, daemon=True)
            self._asking.start()
        addresses = self._addresses
        for _ in addresses:
            self._turn += 1
            address = addresses[self._turn % len(addresses)]
            if self._avoided.get(address[1], 0.0) <= now:
                return address
        return addresses[self._turn % len(addresses)]

    def avoid(self, address: Address) -> None:
        """Nobody could be reached there: use the others for a while."""
        self._avoided[address[1]] = time.monotonic() + _AVOID_SECONDS

    def _look_again(self) -> None:
        try:
            self._look_up()
        except OSError:
            self._looked_up = 0.0

    def _look_up(self) -> None:
        host, port = (self.proxy.host, self.proxy.port) if self.proxy is not None else (self.host, self.port)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))
        if len(addresses) > 1 and not str(addresses[0][1][0]).startswith(("127.", "::1")):
            random.shuffle(addresses)
        self._addresses, self._looked_up = addresses, time.monotonic()
