"""By which address others reach this machine, and how it is written."""

from __future__ import annotations

import socket


def own_address(toward: str, port: int) -> str:
    """The address of this machine on the way to ``toward``; nothing is sent, only an interface is chosen.

    Raises:
        OSError: the name does not resolve, or there is no way.
    """
    family, kind, _, _, where = socket.getaddrinfo(toward, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)
        return str(probe.getsockname()[0])


def with_port(host: str, port: int) -> str:
    """``HOST:PORT``; an address of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
