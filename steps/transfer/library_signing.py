"""Requests to S3, made and signed by awscrt."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from argosy.steps.store.s3_settings import Keys, S3Settings
from argosy.steps.transfer.asking import EMPTY_SHA256, USER_AGENT, Headers, quoted


class LibraryRequest(NamedTuple):
    """An ``awscrt.http.HttpRequest``, and the ``AwsSigningConfig`` that it must be signed by; None: anonymous."""

    http: Any
    signing: Any


class LibrarySigner:
    """Makes requests for one bucket; the same verbs as :class:`argosy.steps.transfer.wire.signing.Signer`."""

    def __init__(self, settings: S3Settings, keys: Keys | None) -> None:
        """``keys`` None: anonymous."""
        from awscrt import auth  # 30 ms, which only who signs with it waits for

        base = urlsplit(settings.base)
        self._host, self._path = base.netloc, quote(unquote(base.path), safe="/")
        self._settings = settings
        self.skew = 0.0
        self._identity = None
        if keys is not None:
            self._identity = auth.AwsCredentialsProvider.new_static(keys.key_id, keys.secret, keys.token or None)

    def head(
        self, method: str, key: str, *, version: str = "", amz: Headers = (), plain: str = "", query: str = ""
    ) -> LibraryRequest:
        """A request for an object; for the bucket if ``key`` is ""."""
        from awscrt import http

        if version:
            query = f"versionId={quote(version, safe='')}"
        path = f"{self._path}/{quoted(key)}"
        given = [("host", self._host), ("user-agent", USER_AGENT), ("accept", "*/*"), *amz]
        given += [(name, value) for line in plain.splitlines() for name, _, value in [line.partition(": ")]]
        if self._settings.requester_pays:
            given.append(("x-amz-request-payer", "requester"))
        request = http.HttpRequest(method, f"{path}?{query}" if query else path, http.HttpHeaders(given))
        return LibraryRequest(request, self._signing() if self._identity is not None else None)

    def _signing(self) -> Any:
        from awscrt import auth

        return auth.AwsSigningConfig(
            algorithm=auth.AwsSigningAlgorithm.V4,
            credentials_provider=self._identity,
            region=self._settings.region,
            service="s3",
            date=datetime.fromtimestamp(time.time() + self.skew, UTC),
            use_double_uri_encode=False,
            should_normalize_uri_path=False,
            signed_body_value=EMPTY_SHA256,
            signed_body_header_type=auth.AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
        )
