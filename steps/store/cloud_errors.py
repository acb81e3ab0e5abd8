"""From what obstore raises to a cause of the closed list."""

from __future__ import annotations

import re

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.store.base import NO_OBJECT, ObjectMissing, StoreError, no_bucket, refused
from argosy.steps.store.cloud_client import first_line
from argosy.steps.store.s3_settings import asked_of

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_SERVED_LATER = ("timed out", "timeout", "connection", "error sending request", "body error", "interrupted", "dns")
_FULL = ("QuotaExceeded", "XMinioAdminBucketQuotaExceeded")
"""Of Ceph (403) and MinIO (400), which say it as if somebody had asked wrongly; others answer 507."""
_SKEWED = ("RequestTimeTooSkewed", "RequestInTheFuture")
_HEADER = re.compile(r"<\?xml[^>]*\?>$")
"""Ends the first line of AWS's and others' answers; what they say stands in the second."""
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "RequestExpired")


def http_status(error: BaseException) -> int:
    """The response's status, 0 when there was none."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else 0


def s3_code(error: BaseException) -> str:
    """The store's own error code (``NoSuchBucket``), "" when it gave none."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def exists_or_conflicts(error: BaseException) -> bool:
    """Whether a create found the key taken, or another request on it under way."""
    return (
        type(error).__name__ in ("AlreadyExistsError", "PreconditionError")
        or http_status(error) in (409, 412)
        or s3_code(error) == "PreconditionFailed"
    )


def lost_connection(error: BaseException) -> bool:
    """Whether no answer came, so that it is not known what the store did."""
    return _is_the_clients(error) and not http_status(error) and _transient(error)


def store_error(action: str, uri: str, error: BaseException) -> StoreError:
    """The :class:`StoreError` for an exception of obstore: cause, what was refused, the store's own words."""
    status, code = http_status(error), s3_code(error)
    quote = _HEADER.sub(code, first_line(error))
    said = f"{status} {code}".strip() if status else quote
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return no_bucket(action, uri, said, quote, sought=action == "list")
    if isinstance(error, FileNotFoundError):
        return ObjectMissing(uri) if code in NO_OBJECT else refused(action, uri, said, quote)
    if isinstance(error, MemoryError):
        return StoreError(Cause.HOST_OOM, f"cannot {action} {uri}: there is not enough memory", quote=quote)
    if code in _EXPIRED:
        return StoreError(
            Cause.CREDENTIALS_EXPIRED, f"cannot {action} {uri}: the credentials expired ({said})", quote=quote
        )
    if code in _SKEWED:
        text = f"cannot {action} {uri}: the clock of this machine is not the store's ({said}): let NTP set it"
        return StoreError(Cause.S3_ACCESS, text, quote=quote, code=ExitCode.SUSPECT_NODE)
    if status == 507 or code in _FULL:
        text = f"cannot {action} {uri}: the store is full ({said}): free some of it, or raise its quota"
        return StoreError(Cause.STORE_UNAVAILABLE, text, quote=quote)
    if status in (401, 403) or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return refused(action, uri, said, quote)
    if type(error).__name__ == "InvalidPathError":
        # The key may hold line feeds, so its first line would not name it; and whoever can write to the bucket could
        # write to the terminal.
        path = str(error).split("\n\nDebug source:")[0]
        path = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in path)
        rule = "keys with empty, '.' or '..' segments or control characters cannot be used; rename the object"
        return StoreError(Cause.DATA_CORRUPT, f"cannot {action} {uri}: {path}; {rule}", quote=path)
    if isinstance(error, ValueError):
        return StoreError(Cause.DATA_CORRUPT, f"cannot {action} {uri}: {quote}", quote=quote)
    if not _is_the_clients(error):
        # A signal handler of the script raised in the middle of our call: nobody's access is wrong.
        text = f"{action} {uri} was interrupted by {type(error).__name__}: {said}"
        return StoreError(Cause.USER_EXCEPTION, text, quote=quote)
    if status >= 500 or status in (408, 409, 429) or lost_connection(error):
        cause = Cause.S3_THROTTLE if status in (429, 503) else Cause.STORE_UNAVAILABLE
        where = "" if status else asked_of(uri)
        return StoreError(cause, f"cannot {action} {uri}: the store did not serve it ({said}){where}", quote=quote)
    return StoreError(Cause.S3_ACCESS, f"cannot {action} {uri}: {said}", quote=quote)


def _is_the_clients(error: BaseException) -> bool:
    """Not a local file's, nor of a handler of signals: their words say nothing of the store."""
    return type(error).__module__.startswith("obstore")


def _transient(error: BaseException) -> bool:
    text = str(error).lower()
    return any(word in text for word in _SERVED_LATER)
