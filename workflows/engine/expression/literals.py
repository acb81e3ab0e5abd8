"""Texts and numbers as they are written in an expression."""

from __future__ import annotations

import re

_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unquote(literal: str) -> str:
    """The text of a quoted literal."""
    if literal[0] == "`":
        return literal[1:-1]
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescape, literal[1:-1])


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPE.get(code, code)
