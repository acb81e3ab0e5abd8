"""Values out of records that others wrote: a wrong or missing one reads as nothing, never as an exception.

The event log is written by pods that may be older, newer or half dead; a report that dies of one bad line is
of no use to the person who wants to know what happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def text(record: Mapping[str, Any], key: str) -> str:
    """The value as text; "" for null."""
    value = record.get(key)
    return "" if value is None else str(value)


def whole(record: Mapping[str, Any], key: str) -> int | None:
    """The value as an integer, or None."""
    value = number(record, key)
    return None if value is None else int(value)


def number(record: Mapping[str, Any], key: str) -> float | None:
    """The value as a finite number, or None; a loss of NaN is None here."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def texts(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of text; one text counts as a list of one."""
    value = record.get(key)
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def moment(record: Mapping[str, Any], key: str) -> float | None:
    """A time, as seconds since 1970 or RFC 3339."""
    value = record.get(key)
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return None
    return number(record, key)
