"""Texts that a ``when`` takes for times, as govaluate does: quoted ones in a few fixed forms, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:(?: (?P<time>\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?(?P<offset>[-+]\d\d:\d\d)?)?))"
    r"|(?:T(?P<instant>\d{1,2}(?::\d\d(?::\d\d(?:[.,]\d+)?)?)?)(?P<zone>Z|[-+]\d\d:?\d\d)))?"
)
_OTHER_TIMES = ("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S UTC %Y", "%a %b %d %H:%M:%S %z %Y", "%I:%M%p")
"""ANSI C, Unix, Ruby, kitchen: the forms besides ISO's that govaluate takes for times."""


def as_time(text: str) -> float | None:
    """Whole seconds since 1970 if govaluate reads the quoted text as a time: comparisons then are those of numbers."""
    match = _ISO.fullmatch(text)
    try:
        if match is None:
            return next((found for form in _OTHER_TIMES if (found := _in_form(text, form)) is not None), None)
        clock = re.split(r"[.,]", re.split(r"[-+]", match["time"] or match["instant"] or "0")[0])[0].split(":")
        zone = match["offset"] or match["zone"] or "Z"
        if match["instant"] and len(clock) < 3 and ":" in zone:
            return None
        hour, minute, second = (int(part) for part in [*clock, "0", "0"][:3])
        day = datetime.fromisoformat(match["day"]).replace(hour=hour, minute=minute, second=second, tzinfo=UTC)
        return day.timestamp() - _offset(zone)
    except ValueError:
        return None


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _in_form(text: str, form: str) -> float | None:
    try:
        found = datetime.strptime(text, form)
    except ValueError:
        return None
    if form == "%I:%M%p":
        found = found.replace(year=1)
    return float(int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))
