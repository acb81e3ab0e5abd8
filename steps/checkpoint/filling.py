"""Read into memory that is there already, and hash it on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

_RANGE = 4 << 20


def filled(into: memoryview, read: Callable[[int, memoryview], int]) -> tuple[int, str]:
    """Fill ``into`` range by range, each hashed while it is warm: how many bytes there were, and their SHA-256."""
    seen, hashed = 0, hashlib.sha256()
    while seen < len(into) and (count := read(seen, into[seen : seen + _RANGE])):
        hashed.update(into[seen : seen + count])
        seen += count
    return seen, hashed.hexdigest()
