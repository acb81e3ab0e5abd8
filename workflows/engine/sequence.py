"""``withSequence``: its numbers, written as Go's ``fmt.Sprintf`` writes one whole number."""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError

_VERB = re.compile(r"%([-+# 0]*)(\d+)?(?:\.(\d+))?(.)?", re.DOTALL)
_BASES = {"b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}


def texts(sequence: dict[str, Any]) -> list[str]:
    """The items of a ``withSequence`` whose tags are replaced.

    Raises:
        ExpressionError: a bound is no number, or the format gives something that cannot stand in JSON.
    """
    start = _bound(sequence, "start")
    if sequence.get("end") is not None:
        end = _bound(sequence, "end")
    else:
        count = _bound(sequence, "count")
        if count == 0:
            return []
        end = start + count - 1
    numbers = range(start, end + 1) if start <= end else range(start, end - 1, -1)
    form = str(sequence.get("format") or "%d")
    return [_item(formatted(form, number)) for number in numbers]


def _bound(sequence: dict[str, Any], name: str) -> int:
    value = str(sequence.get(name, 0))
    if not re.fullmatch(r"[-+]?[0-9]+", value):
        raise ExpressionError(f'strconv.Atoi: parsing "{value}": invalid syntax')
    return int(value)


def _item(text: str) -> str:
    """The text of the JSON string that Argo makes by putting quotes around ``text``."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        raise ExpressionError(f"withSequence.format: {text!r} cannot stand between quotes in JSON") from None


def formatted(form: str, number: int) -> str:
    """``fmt.Sprintf(form, number)``, with Go's remarks on a verb that does not fit or is missing."""
    used = 0

    def one(match: re.Match[str]) -> str:
        nonlocal used
        flags, width, precision, verb = match.groups()
        if verb == "%":
            return "%"
        if verb is None:
            return "%!(NOVERB)"
        used += 1
        if used > 1:
            return f"%!{verb}(BADINDEX)" if "[" in form else f"%!{verb}(MISSING)"
        return _padded(_digits(verb, flags, precision, number), flags, width, verb)

    found = _VERB.sub(one, form)
    return found if used else f"{found}%!(EXTRA int={number})"


def _digits(verb: str, flags: str, precision: str | None, number: int) -> str:
    if verb in "dv":
        body = str(abs(number))
    elif verb in _BASES:
        body = format(abs(number), _BASES[verb])
        prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(verb, "") if "#" in flags else ""
        body = ("0o" if verb == "O" else prefix) + body
    elif verb in "cqU":
        return _rune(verb, number)
    elif verb == "T":
        return "int"
    else:
        return f"%!{verb}(int={number})"
    body = body.rjust(int(precision or 0), "0")
    sign = "-" if number < 0 else "+" if "+" in flags else " " if " " in flags else ""
    return sign + body


def _rune(verb: str, number: int) -> str:
    if verb == "U":
        return f"U+{number:04X}"
    rune = chr(number) if 0 <= number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    if verb == "c":
        return rune
    shown = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(rune)
    if shown is None:
        shown = rune if rune.isprintable() else f"\\x{number:02x}"
    return f"'{shown}'"


def _padded(text: str, flags: str, width: str | None, verb: str) -> str:
    size = int(width or 0)
    if "-" in flags:
        return text.ljust(size)
    if "0" in flags and verb not in "cqUT":
        sign = text[:1] if text[:1] in "+- " else ""
        return sign + text[len(sign) :].rjust(size - len(sign), "0")
    return text.rjust(size)
