"""Texts and numbers as they are written in an expression."""

from __future__ import annotations

import re

from argosy.workflows.engine.expression.parser import ExpressionError

_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
_CODE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|(.))",
    re.DOTALL,
)
_LONGEST = 2**63 - 1


def unquote(literal: str) -> str:
    """The text of a quoted literal.

    Raises:
        ExpressionError: an escape that is none.
    """
    quote, inner = literal[0], literal[1:-1]
    return inner if quote == "`" else _CODE.sub(lambda match: _unescaped(match, quote), inner)


def _unescaped(match: re.Match[str], quote: str) -> str:
    code = match[1] or match[2] or match[3] or match[4]
    if code or match[5]:
        number = int(code, 16) if code else int(match[5], 8)
        if number < 0x110000:
            return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)
    elif match[6] == quote:
        return quote
    elif match[6] in _ESCAPE:
        return _ESCAPE[match[6]]
    raise ExpressionError(f"invalid char escape {match[0]}")


def number_of(literal: str) -> int | float:
    """The number that a literal means.

    Raises:
        ExpressionError: it is too big.
    """
    text = literal.replace("_", "")
    if text.startswith("0x"):
        found: int | float = int(text, 16)
    else:
        found = float(text) if any(mark in text for mark in ".eE") else int(text)
    if found > _LONGEST if isinstance(found, int) else found == float("inf"):
        raise ExpressionError(f"invalid number {literal}: value out of range")
    return found
