"""Which proxy a host is reached through: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``, ``NO_PROXY``."""

from __future__ import annotations

import base64
import os
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError


class Proxy(NamedTuple):
    """An HTTP proxy; ``secure``: spoken to over TLS. ``user``: how we are known to it, "" for nobody."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    secure: bool = False

    @property
    def header(self) -> str:
        """The line that names us to it, "" for none."""
        if not self.user:
            return ""
        return f"proxy-authorization: Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}\r\n"


def proxy_for(scheme: str, host: str) -> Proxy | None:
    """The proxy for a url's scheme and host, None for the way without.

    Raises:
        StoreError: ``s3_access``: a proxy that is not spoken to in HTTP.
    """
    named = {name.lower(): value for name, value in os.environ.items() if name.lower().endswith("_proxy") and value}
    url = named.get(f"{scheme}_proxy") or named.get("all_proxy")
    if not url:
        return None
    # Its rules for NO_PROXY are those of curl and boto3; it is slow to import, so only here.
    from urllib.request import proxy_bypass

    if proxy_bypass(host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StoreError(
            Cause.S3_ACCESS, f"{scheme.upper()}_PROXY is a proxy of kind {parts.scheme!r}; use http://host:port"
        )
    secure = parts.scheme == "https"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(parts.hostname, parts.port or (443 if secure else 80), user, password, secure)
