"""Durations as Go, Prometheus and Argo write them: ``90s``, ``1h30m``, ``2d``; a bare number is seconds."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


def seconds(text: str) -> float | None:
    """``"1h30m"`` as 5400.0; None for what is no duration."""
    plain = text.strip()
    if plain.isdecimal():
        return float(plain)
    parts = list(_PART.finditer(plain))
    if not parts or "".join(each.group() for each in parts) != plain:
        return None
    return sum(float(each[1]) * _SECONDS[each[2]] for each in parts)
