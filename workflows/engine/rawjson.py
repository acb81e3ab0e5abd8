"""JSON that keeps its text: Argo hands on items and results of loops as they were written (1.50, the keys' order)."""

from __future__ import annotations

import json
import re

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import no_constant

_SPACE_OR_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|\s+', re.DOTALL)
_ESCAPED = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


_DECODER = json.JSONDecoder(parse_constant=no_constant)


def compact(text: str) -> str:
    """The JSON value in ``text`` without white space, ``<>&`` escaped; nothing else is changed.

    Raises:
        ExpressionError: not JSON.
    """
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        first = text.strip()[:1]
        if not first:
            raise ExpressionError("unexpected end of JSON input") from None
        raise ExpressionError(f"invalid character {first!r} looking for beginning of value") from None
    return _SPACE_OR_TEXT.sub(lambda found: found[0].translate(_ESCAPED) if found[0][0] == '"' else "", text)


def items(text: str) -> list[str]:
    """The texts of the values of a list (``text`` as :func:`compact` gives it)."""
    found, position = [], 1
    while text[position] != "]":
        end = _end(text, position)
        found.append(text[position:end])
        position = end + (text[end] == ",")
    return found


def members(text: str) -> dict[str, str]:
    """The texts of the values of a map (``text`` as :func:`compact` gives it)."""
    found, position = {}, 1
    while text[position] != "}":
        colon = _end(text, position)
        end = _end(text, colon + 1)
        found[str(json.loads(text[position:colon]))] = text[colon + 1 : end]
        position = end + (text[end] == ",")
    return found


def shown(text: str) -> str:
    """How Argo prints an item, in a name or as a map's value: a text without its quotes, its escapes as they stand."""
    inner = text[1:-1] if text[:1] == '"' else text
    return inner.replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def _end(text: str, position: int) -> int:
    return int(_DECODER.raw_decode(text, position)[1])
