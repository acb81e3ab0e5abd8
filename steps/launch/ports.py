"""Ports that nobody holds."""

from __future__ import annotations

import socket


def free_port(address: str) -> int:
    """One that is free on every interface at this moment; ``address``, of whichever host, says whether of IPv4 or 6."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
