"""Go's regular expressions (RE2), made of Python's: what only one of the two knows is refused, never guessed."""

from __future__ import annotations

import re
from functools import lru_cache

from argosy.workflows.engine.expression.parser import ExpressionError

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_REPEAT = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})"
_PIECE = re.compile(
    rf"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\x\{{(?P<code>[0-9a-fA-F]+)\}} | \\(?P<octal>[0-7]{{3}}) | (?P<escape>\\.)
    | (?P<group>\((?:\?(?:P?<(?P<name>\w+)>|[ims]*:))?)(?!\?)
    | (?P<repeat>{_REPEAT}\??)(?!{_REPEAT})
    | (?P<set>\[(?:\^?\]|\^(?!\])|(?![]^]))(?:\[:\^?[a-z]+:\]|\\.|[^]\\])*\])
    | (?!{_REPEAT})(?P<plain>[^\\(\[])""",
    re.DOTALL | re.VERBOSE,
)
_IN_SET = re.compile(
    r"\[:(?P<named>\^?[a-z]+):\]|\\x\{(?P<code>[0-9a-fA-F]+)\}|(?P<escape>\\.)|(?P<plain>[^\\])", re.DOTALL
)
_NAMED = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t-\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ESCAPES = re.compile(r"\\(?:[^\w]|[dDwWtnrfvax])")
_PLACES = {
    "^": "(?:^)", "$": r"(?:\Z)", r"\A": r"(?:\A)", r"\z": r"(?:\Z)", r"\b": r"(?:\b)", r"\B": r"(?!\b)",
    r"\s": r"[\t\n\f\r ]", r"\S": r"[^\t\n\f\r ]", r"\_": "_",
}  # fmt: skip
"""Written otherwise in Python, where one may not repeat a bare place and ``\\s`` has one more character."""


def search(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches somewhere in ``text``.

    Raises:
        ExpressionError: Go does not know the pattern, or the local engine cannot say it.
    """
    try:
        return _compiled(pattern).search(text) is not None
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError(f"error parsing regexp: {error}: `{pattern}`") from None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    leading = re.match(r"\(\?([ims]+)\)", pattern)
    position = leading.end() if leading else 0
    flags = re.NOFLAG if leading and not pattern.isascii() else re.ASCII
    for letter in leading[1] if leading else "":
        flags |= _FLAGS[letter]
    found = []
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        if piece is None:
            raise re.error(f"{pattern[position : position + 4]!r} is not known to Go or to the local engine")
        found.append(_piece(piece, bool(flags & re.MULTILINE)))
        position = piece.end()
    return re.compile("".join(found), flags)


def _piece(piece: re.Match[str], by_lines: bool) -> str:
    kind = piece.lastgroup
    if kind == "name" or piece["name"]:
        return f"(?P<{piece['name']}>"
    if kind == "repeat" and any(int(count) > 1000 for count in re.findall("[0-9]+", piece[0])):
        raise re.error(f"invalid repeat count: `{piece[0]}`")
    if kind == "quoted":
        return re.escape(piece["quoted"])
    if kind == "set":
        start = re.match(r"\[\^?\]?", piece[0])
        head = start[0] if start else "["
        return head.replace("]", r"\]") + "".join(map(_member, _IN_SET.finditer(piece[0][len(head) : -1]))) + "]"
    if piece[0] in _PLACES:
        return _PLACES[piece[0]] if piece[0] != "$" or not by_lines else "(?:$)"
    if kind == "plain" and piece[0] == "{":
        return r"\{"
    return _character(piece)


def _member(piece: re.Match[str]) -> str:
    if piece["named"]:
        if piece["named"] not in _NAMED:
            raise re.error(f"invalid character class range: `{piece[0]}`")
        return _NAMED[piece["named"]]
    return rf"\{piece[0]}" if piece[0] in "[&~|" else _character(piece)


def _character(piece: re.Match[str]) -> str:
    code = piece["code"] or ""
    if code or piece.groupdict().get("octal"):
        return re.escape(chr(int(code, 16) if code else int(piece["octal"], 8)))
    if piece["escape"]:
        if piece[0] == r"\s":
            return r"\t\n\f\r "
        if not _ESCAPES.fullmatch(piece[0]):
            raise re.error(f"invalid escape sequence: `{piece[0]}`")
    return piece[0]
