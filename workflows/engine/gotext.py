"""How Go writes values: numbers, JSON, durations and hashes must come out as the real controller's do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

_DURATION_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")


_BREAKS_JSON = re.compile(r"[\x00-\x07\x0b\x0e-\x1f\x7f]")
_RARE = re.compile(r"[\U00010000-\U0010ffff]")
"""Where Go takes one for no letter that can be printed, it writes ``\\U`` and eight digits, which no JSON has."""


def breaks_json(text: str) -> bool:
    """Whether a value makes invalid JSON of the template that it is put into."""
    return _BREAKS_JSON.search(text) is not None or any(not mark.isprintable() for mark in _RARE.findall(text))


def float_text(value: float) -> str:
    """``strconv.FormatFloat(value, 'f', -1, 64)``: shortest digits, never an exponent."""
    if math.isinf(value) or math.isnan(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _exponential(value: float) -> str:
    """With an exponent, at least two digits of it."""
    digits = Decimal(repr(value))
    mantissa, _, exponent = f"{digits.normalize():e}".partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].rjust(2, '0')}"


def _json_number(value: float) -> str:
    """As ``json.Marshal`` writes a float64.

    Raises:
        ValueError: no JSON has it.
    """
    if math.isinf(value) or math.isnan(value):
        raise ValueError(f"json: unsupported value: {float_text(value)}")
    if value and not 1e-6 <= abs(value) < 1e21:
        return re.sub(r"e-0(.)$", r"e-\1", _exponential(value))
    return float_text(value)


def printed_float(value: float) -> str:
    """``fmt.Sprint`` of a float64."""
    plain = value == 0 or math.isinf(value) or math.isnan(value) or 1e-4 <= abs(value) < 1e6
    return float_text(value) if plain else _exponential(value)


def json_text(value: Any, line: str = "") -> str:
    """``json.Marshal``: compact, keys sorted, ``<>&`` escaped. ``line`` begins each line, as in MarshalIndent.

    Raises:
        ValueError: a number that no JSON has.
    """
    below = line and f"{line}  "
    if isinstance(value, Mapping):
        colon = ": " if line else ":"
        return _json_listed(
            "{}", [json_text(str(key)) + colon + json_text(value[key], below) for key in sorted(value)], line
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _json_listed("[]", [json_text(item, below) for item in value], line)
    if isinstance(value, float):
        return _json_number(value)
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        for plain in "<>&\u2028\u2029":
            text = text.replace(plain, f"\\u{ord(plain):04x}")
    return text


def no_constant(text: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python takes for JSON."""
    raise ValueError(f"invalid character {text[:1]!r} looking for beginning of value")


def from_json(text: str) -> Any:
    """The value in ``text`` as Go has it where it knows no type: every number is a float64.

    Raises:
        ValueError: not JSON, or a number that is too big.
    """
    try:
        return json.loads(text, parse_int=_float, parse_float=_float, parse_constant=no_constant)
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return found


def _json_listed(brackets: str, items: list[str], line: str) -> str:
    if not line or not items:
        return brackets[0] + ",".join(items) + brackets[1]
    return f"{brackets[0]}{line}  " + f",{line}  ".join(items) + f"{line}{brackets[1]}"


def plain_text(value: Any) -> str:
    """``fmt.Sprintf("%v", value)`` for JSON values."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return printed_float(value)
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
