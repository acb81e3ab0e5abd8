"""From what obstore raises to a cause of the closed list."""

from __future__ import annotations

import re

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import ObjectMissing, StoreError
from argosy.steps.store.cloud_client import first_line

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_SERVED_LATER = ("timed out", "timeout", "connection", "error sending request", "body error", "interrupted", "dns")
_EXPIRED = ("ExpiredToken", "TokenRefreshRequired", "RequestExpired")


def http_status(error: BaseException) -> int:
    """The response's status, 0 when there was none."""
    found = _STATUS.search(str(error))
    return int(found[1]) if found else 0


def s3_code(error: BaseException) -> str:
    """The store's own error code (``NoSuchBucket``), "" when it gave none."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def lost_connection(error: BaseException) -> bool:
    """Whether no answer came, so that it is not known what the store did."""
    return not http_status(error) and _transient(error)


def store_error(action: str, uri: str, error: BaseException) -> StoreError:
    """The :class:`StoreError` for an exception of obstore: cause, what was refused, the store's own words."""
    status, code, quote = http_status(error), s3_code(error), first_line(error)
    said = f"{status} {code}".strip() if status else quote
    if code in ("NoSuchBucket", "ContainerNotFound"):
        text = f"cannot {action} {uri}: the bucket does not exist ({said}); create it, or correct the uri"
        return StoreError(Cause.S3_MISSING, text, quote=quote)
    if isinstance(error, FileNotFoundError):
        return ObjectMissing(uri)
    if isinstance(error, MemoryError):
        return StoreError(Cause.HOST_OOM, f"cannot {action} {uri}: there is not enough memory", quote=quote)
    if code in _EXPIRED:
        return StoreError(
            Cause.CREDENTIALS_EXPIRED, f"cannot {action} {uri}: the credentials expired ({said})", quote=quote
        )
    if status in (401, 403) or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        remedy = "allow this action on this key, or check the credentials"
        return StoreError(Cause.S3_ACCESS, f"{action} {uri} was refused ({said}): {remedy}", quote=quote)
    if type(error).__name__ == "InvalidPathError":
        # The key may hold line feeds, so its first line would not name it; and whoever can write to the bucket could
        # write to the terminal.
        refused = str(error).split("\n\nDebug source:")[0]
        refused = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in refused)
        rule = "keys with empty, '.' or '..' segments or control characters cannot be used; rename the object"
        return StoreError(Cause.DATA_CORRUPT, f"cannot {action} {uri}: {refused}; {rule}", quote=refused)
    if isinstance(error, ValueError):
        return StoreError(Cause.DATA_CORRUPT, f"cannot {action} {uri}: {quote}", quote=quote)
    if status >= 500 or status in (408, 409, 429) or lost_connection(error):
        cause = Cause.S3_THROTTLE if status in (429, 503) else Cause.STORE_UNAVAILABLE
        return StoreError(cause, f"cannot {action} {uri}: the store did not serve it ({said})", quote=quote)
    if not type(error).__module__.startswith("obstore"):
        # A signal handler of the script raised in the middle of our call: nobody's access is wrong.
        text = f"{action} {uri} was interrupted by {type(error).__name__}: {said}"
        return StoreError(Cause.USER_EXCEPTION, text, quote=quote)
    return StoreError(Cause.S3_ACCESS, f"cannot {action} {uri}: {said}", quote=quote)


def _transient(error: BaseException) -> bool:
    text = str(error).lower()
    return any(word in text for word in _SERVED_LATER)
