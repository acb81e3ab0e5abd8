"""What every request for an object has in it, whoever makes and signs it."""

from __future__ import annotations

import hashlib
from typing import TypeAlias
from urllib.parse import quote

Headers: TypeAlias = tuple[tuple[str, str], ...]
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
USER_AGENT = "argosy"


def quoted(key: str) -> str:
    """A key as S3 signs and serves it: unreserved characters and ``/`` as they are, the rest as UTF-8 in %XX.

    Raises:
        UnicodeEncodeError: the key is no text.
    """
    return quote(key, safe="/")
