"""How Go writes values: numbers, JSON, durations and hashes must come out as the real controller's do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

_DURATION_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")


def float_text(value: float) -> str:
    """``strconv.FormatFloat(value, 'f', -1, 64)``: shortest digits, never an exponent."""
    if math.isinf(value) or math.isnan(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return format(Decimal(repr(value)), "f")


def _json_number(value: float) -> str:
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def json_text(value: Any) -> str:
    """``json.Marshal``: compact, keys sorted, ``<>&`` escaped."""
    if isinstance(value, Mapping):
        inner = ",".join(f"{json_text(str(key))}:{json_text(value[key])}" for key in sorted(value))
        return "{" + inner + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    if isinstance(value, float):
        return _json_number(value)
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        for plain in "<>&\u2028\u2029":
            text = text.replace(plain, f"\\u{ord(plain):04x}")
    return text


def plain_text(value: Any) -> str:
    """``fmt.Sprintf("%v", value)`` for JSON values."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{plain_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + " ".join(plain_text(item) for item in value) + "]"
    return str(value)


def any_string(value: object) -> str:
    """Argo's ``AnyString``: a scalar of the YAML as text.

    Raises:
        ValueError: the value is a list, a map or null.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    raise ValueError("a text, a number or a boolean is needed")


def duration_seconds(text: str) -> float:
    """Seconds of ``90``, ``1.5s``, ``2m30s``, ``1h`` (a bare number is seconds).

    Raises:
        ValueError: not a duration.
    """
    plain = text.strip()
    if re.fullmatch(r"-?[0-9]+", plain):
        return float(plain)
    parts = _DURATION.findall(plain)
    if not parts or "".join(number + unit for number, unit in parts) != plain:
        raise ValueError(f"{text!r} is not a duration such as 30s, 2m30s or 1h")
    return sum(float(number) * _DURATION_UNIT[unit] for number, unit in parts)


def short_duration(seconds: float) -> str:
    """How the controller's messages write a wait: ``2 seconds``, ``1 minute 30 seconds``."""
    left = round(seconds)
    parts = []
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count != 1 else ''}")
    return " ".join(parts[:2]) or "0 seconds"


def fnv32a(text: str) -> int:
    """32-bit FNV-1a of the UTF-8 bytes: what node ids and pod names end with."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def rfc3339(seconds: float) -> str:
    """UTC time as ``2026-01-31T12:00:00Z``."""
    from time import gmtime, strftime

    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))
