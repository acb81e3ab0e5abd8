"""What an answer that is no success means: wait and ask again, or give up, and in which words."""

from __future__ import annotations

import re
from typing import Self

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import NO_OBJECT, ObjectMissing, StoreError, no_bucket, refused
from argosy.steps.store.s3_settings import asked_of
from argosy.steps.transfer.jobs import Again

_CODE = re.compile(rb"<Code>\s*(\w+)\s*</Code>")
_MESSAGE = re.compile(rb"<Message>\s*([^<]{1,300})</Message>")
_REGION = re.compile(rb"<Region>\s*([a-z0-9-]+)\s*</Region>")
EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "RequestExpired", "InvalidToken", "ExpiredTokenException")
SKEWED = ("RequestTimeTooSkewed", "RequestInTheFuture")
THROTTLED = ("SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "Busy")
_LATER = ("RequestTimeout", "InternalError", "OperationAborted", "ServiceUnavailable")


class Refusal:
    """Status, and what S3 wrote about it (HEAD answers write nothing: then ``code`` is "")."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.code = _first(_CODE, body)
        self.message = _first(_MESSAGE, body)
        self.region = _first(_REGION, body)

    @classmethod
    def of(cls, status: int, code: str, message: str) -> Self:
        """One that somebody else has read; botocore's code of an empty body is its status."""
        made = cls(status, b"")
        made.code, made.message = ("" if code == str(status) else code), message
        return made

    @property
    def said(self) -> str:
        """``503 SlowDown``."""
        return f"{self.status} {self.code}".strip()

    @property
    def redirected(self) -> bool:
        """Whether the bucket is somewhere else."""
        return self.status in (301, 302, 307, 308) or self.code == "AuthorizationHeaderMalformed"

    @property
    def mendable(self) -> bool:
        """Whether another clock, key or region may help. An answer to HEAD has no body, so its 400 may be any."""
        unsaid = self.status == 400 and not self.code
        return self.redirected or unsaid or self.code in (*EXPIRED, *SKEWED)

    def error(self, uri: str, etag: str = "", action: str = "read") -> StoreError | Again:
        """What to do about it; ``etag`` is what was asked for, ``action`` the verb for people."""
        quote = f"{self.said} {self.message}".strip()
        if self.code == "NoSuchBucket":
            return no_bucket(action, uri, self.said, quote, sought=True)
        if self.status == 404 and self.code in NO_OBJECT:
            return ObjectMissing(uri)
        if self.status == 412:
            return StoreError(Cause.S3_MISSING, f"dataset changed: {uri} is no longer version {etag}", quote=quote)
        if self.status == 416:
            text = f"dataset changed: {uri} is shorter than it was ({self.said})"
            return StoreError(Cause.S3_MISSING, text, quote=quote)
        if self.status in (429, 503) or self.code in THROTTLED:
            return Again(_unserved(f"cannot {action} {uri}", self.said, quote, Cause.S3_THROTTLE), throttled=True)
        if self.status in (408, 409, 500, 502, 504) or self.code in _LATER:
            return Again(_unserved(f"cannot {action} {uri}", self.said, quote))
        if self.code in EXPIRED:
            text = f"cannot {action} {uri}: the credentials expired ({self.said})"
            return StoreError(Cause.CREDENTIALS_EXPIRED, text, quote=quote)
        if self.code == "InvalidObjectState":
            text = f"cannot {action} {uri}: it is archived ({self.said}); restore it first"
            return StoreError(Cause.S3_ACCESS, text, quote=quote)
        if self.status in (401, 403, 404):
            return refused(action, uri, self.said, quote)
        return StoreError(Cause.S3_ACCESS, f"cannot {action} {uri}: the store answered {quote}", quote=quote)


def _unserved(what: str, said: str, quote: str, cause: Cause = Cause.STORE_UNAVAILABLE) -> StoreError:
    return StoreError(cause, f"{what}: the store did not serve it ({said})", quote=quote)


def lost(uri: str, error: Exception, *, action: str = "read") -> StoreError:
    """The error for an answer that did not come."""
    quote = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in quote:
        text = (
            f"cannot {action} {uri}: the server's certificate is not trusted: name its issuer's file in AWS_CA_BUNDLE"
        )
        return StoreError(Cause.S3_ACCESS, text, quote=quote)
    text = f"cannot {action} {uri}: the store did not serve it ({quote}){asked_of(uri)}"
    return StoreError(Cause.STORE_UNAVAILABLE, text, quote=quote)


def _first(pattern: re.Pattern[bytes], body: bytes) -> str:
    found = pattern.search(body)
    return found[1].decode("utf-8", "replace").strip() if found else ""
