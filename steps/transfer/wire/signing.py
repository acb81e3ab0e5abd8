"""Requests to S3 as bytes, signed by AWS Signature Version 4.

Written for many small requests: what does not change within a second (dates, header blocks, the signing key) is made
once, so that a request costs one SHA-256 and one HMAC.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from urllib.parse import quote, unquote, urlsplit

from argosy.steps.store.s3_settings import Keys, S3Settings
from argosy.steps.transfer.asking import EMPTY_SHA256, USER_AGENT, Headers, quoted
from argosy.steps.transfer.proxies import Proxy


class Signer:
    """Makes request heads for one bucket; not for requests that have a body."""

    def __init__(
        self,
        settings: S3Settings,
        keys: Keys | None,
        *,
        proxy: Proxy | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``keys`` None: anonymous. ``proxy``: one that is asked with absolute urls. ``now``: seconds since 1970."""
        base = urlsplit(settings.base)
        self.host = base.netloc
        self._path = quote(unquote(base.path), safe="/")
        self._before = f"{base.scheme}://{base.netloc}" if proxy is not None and base.scheme == "http" else ""
        self._settings, self._keys, self._now = settings, keys, now
        self._proxy_header = proxy.header if proxy is not None and self._before else ""
        self.skew = 0.0
        self._second, self._day = -1, ""
        self._key = b""
        self._to_sign = ""
        self._blocks: dict[Headers, tuple[str, str]] = {}

    def head(
        self, method: str, key: str, *, version: str = "", amz: Headers = (), plain: str = "", query: str = ""
    ) -> bytes:
        """A request for an object; for the bucket if ``key`` is "".

        ``query``: what is asked of the bucket, by name, with quoted values. ``amz``: ``x-amz-`` headers, lower case;
        they are signed. ``plain``: lines of headers that are not.
        """
        second = int(self._now() + self.skew)
        if second != self._second:
            self._begin(second)
        path = f"{self._path}/{quoted(key)}"
        if version:
            query = f"versionId={quote(version, safe='')}"
        target = f"{self._before}{path}?{query}" if query else f"{self._before}{path}"
        canonical, block = self._blocks.get(amz) or self._block(amz)
        signature = ""
        if self._keys is not None:
            digest = hashlib.sha256(f"{method}\n{path}\n{query}\n{canonical}".encode()).hexdigest()
            signature = hmac.digest(self._key, f"{self._to_sign}{digest}".encode(), "sha256").hex() + "\r\n"
        return f"{method} {target} HTTP/1.1\r\n{plain}{block}{signature}\r\n".encode()

    def _begin(self, second: int) -> None:
        """Another second: new dates, and on another day a new key."""
        self._second = second
        self._stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        self._blocks.clear()
        if self._keys is None:
            return
        day = self._stamp[:8]
        scope = f"{day}/{self._settings.region}/s3/aws4_request"
        if day != self._day:
            self._day = day
            key = f"AWS4{self._keys.secret}".encode()
            for word in (day, self._settings.region, "s3", "aws4_request"):
                key = hmac.digest(key, word.encode(), "sha256")
            self._key = key
        self._scope = scope
        self._to_sign = f"AWS4-HMAC-SHA256\n{self._stamp}\n{scope}\n"

    def _block(self, amz: Headers) -> tuple[str, str]:
        """The end of the canonical request, and the header lines that go with it up to the signature."""
        given = [*amz, ("host", self.host)]
        if self._settings.requester_pays:
            given.append(("x-amz-request-payer", "requester"))
        if self._keys is not None:
            given += [("x-amz-content-sha256", EMPTY_SHA256), ("x-amz-date", self._stamp)]
            if self._keys.token:
                given.append(("x-amz-security-token", self._keys.token))
        given.sort()
        names = ";".join(name for name, _ in given)
        lines = "".join(f"{name}: {value}\r\n" for name, value in given)
        block = f"{lines}user-agent: {USER_AGENT}\r\naccept: */*\r\n{self._proxy_header}"
        if self._keys is not None:
            credential = f"AWS4-HMAC-SHA256 Credential={self._keys.key_id}/{self._scope}"
            block += f"authorization: {credential}, SignedHeaders={names}, Signature="
        canonical = "".join(f"{name}:{value}\n" for name, value in given)
        made = f"{canonical}\n{names}\n{EMPTY_SHA256}", block
        self._blocks[amz] = made
        return made
