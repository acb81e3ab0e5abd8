"""An address that ranks dial: ``HOST[.SERVICE[.NAMESPACE[.svc[.cluster.local]]]][:PORT]``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_IP = re.compile(r"\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F:]*::[0-9a-fA-F:]*")


@dataclass(frozen=True, slots=True)
class Address:
    """An address.

    Args:
        labels: the name's parts before ``svc``; one for an IP.
        qualified: it ends in ``svc`` or in a cluster's domain, so its last part is the namespace.
        port: None without one.
    """

    labels: tuple[str, ...]
    qualified: bool
    port: int | None

    @property
    def host(self) -> str:
        """The first part."""
        return self.labels[0]

    @property
    def ip(self) -> bool:
        """Whether it is an address and not a name."""
        return len(self.labels) == 1 and _IP.fullmatch(self.labels[0]) is not None

    @property
    def loopback(self) -> bool:
        """Whether it means the pod itself."""
        return self.host in ("localhost", "::1", "0.0.0.0") or (self.ip and self.host.startswith("127."))

    @property
    def service(self) -> str:
        """The part that a Service's name would be, were the first one a pod's; ``""`` without."""
        return self.labels[1] if len(self.labels) > 1 and not (self.qualified and len(self.labels) == 2) else ""


def address(text: str) -> Address | None:
    """Read one; None for what is none (empty, with variables, a name outside of a cluster)."""
    bare = re.sub(r"^[a-z][a-z0-9+]*://", "", text.strip().strip("'\"")).partition("/")[0]
    if not bare or re.search(r"[$`{}\s<>*]", bare):
        return None
    host, port = _split(bare)
    if not host:
        return None
    if _IP.fullmatch(host):
        return Address((host,), False, port)
    labels = host.rstrip(".").split(".")
    if "svc" in labels[2:]:  # a Service may be named svc
        return Address(tuple(labels[: labels.index("svc", 2)]), True, port)
    return Address(tuple(labels), False, port)


def _split(text: str) -> tuple[str, int | None]:
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::(\d{1,5}))?", text)
    if bracketed is not None:
        return bracketed[1], int(bracketed[2]) if bracketed[2] else None
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and ":" not in host and len(port) <= 5:
        return host, int(port)
    return (text.rstrip(":"), None) if text.count(":") < 2 or "::" in text else ("", None)
