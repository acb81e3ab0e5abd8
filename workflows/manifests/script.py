"""A shell script as a sequence of simple commands with what stands between them.

The grammar of a shell is larger than this: what is not understood is left as words, never guessed. Here-documents are
data, quotes may span lines, a backslash at a line's end joins two lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_OPENS: Final = frozenset({"if", "for", "while", "until", "case", "select", "{", "("})
_CLOSES: Final = frozenset({"fi", "done", "esac", "}", ")"})
_HERE: Final = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
MOST_COMMANDS: Final = 400
"""Commands of one script that are looked at: each has an environment of its own, and no container starts so many."""
LONGEST: Final = 128 << 10
"""Characters of one script that are read: Linux takes no longer word on a command line (MAX_ARG_STRLEN)."""
# A line with the lines to which its quotes reach: no part of it can match in two ways, so it takes one pass.
_LOGICAL: Final = re.compile(r"""(?:[^'"\\\n#]|\\.|(?<=\S)#|(?<!\S)#[^\n]*|'[^']*'|"(?:[^"\\]|\\.)*")*""", re.DOTALL)
_LONGEST_QUOTE: Final = 400
"""Lines that one quoted text may span; an apostrophe in a comment must not swallow the script, nor take long."""


# Inside of $( ), what would end a word stands in Unicode's private area while the line is cut into words.
_MASK: Final = {character: chr(0xE000 + index) for index, character in enumerate(" \t\n;&|()#'\"")}
_UNMASK: Final = {ord(masked): character for character, masked in _MASK.items()}


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command.

    Args:
        words: as the shell passes them, without redirections being taken out.
        text: the line it stands on (joined lines as one), for the caret.
        before: what separates it from the command before: ``\\n``, ``;``, ``&&``, ``||``, ``|``, ``&`` or ``""``.
        after: what separates it from the next.
        depth: 0 at the top level, more inside of ``if``, loops, functions and subshells.
    """

    words: tuple[str, ...]
    text: str
    before: str
    after: str
    depth: int

    @property
    def name(self) -> str:
        """The first word's base name."""
        return self.words[0].rsplit("/", 1)[-1]


@lru_cache(maxsize=1024)  # many rules ask for the same script, one after the other
def commands(script: str) -> tuple[Command, ...]:
    """The simple commands of a script in order."""
    found: list[Command] = []
    depth, before = 0, ""
    for line, tokens in _lines(script[:LONGEST]):
        if len(found) >= MOST_COMMANDS:
            break
        words: list[str] = []
        for token in [*tokens, "\n"]:
            if token != "\n" and (not token or set(token) - set(";&|()")):
                words.append(token)
                continue
            operator = "\n" if set(token) <= set("()") else token
            if words:
                depth = max(0, depth + _steps(words, -1))
                found.append(Command(tuple(words), line, before, operator, depth))
                depth += _steps(words, 1)
                words = []
                before = operator
            depth = max(0, depth + (token.count("(") - token.count(")")))
    return tuple(found)


def _steps(words: Sequence[str], sign: int) -> int:
    if sign < 0:
        return -1 if words[0] in _CLOSES else 0
    return 1 if words[0] in _OPENS or words[-1] == "{" else 0


def _lines(script: str) -> Iterator[tuple[str, list[str]]]:
    """(text, tokens) of the logical lines."""
    lines = re.sub(r"\\\r?\n", " ", script).split("\n")
    index = 0
    while index < len(lines):
        line, tokens, used = _lex(lines, index)
        index += used
        if tokens:
            yield line.strip(), tokens
        ending = _HERE.search(line)
        if ending is not None and any(each.strip() == ending[2] for each in lines[index:]):
            while lines[index].strip() != ending[2]:
                index += 1
            index += 1


def _lex(lines: list[str], index: int) -> tuple[str, list[str], int]:
    """(text, tokens, number of lines) of the logical line that begins at ``index``."""
    first = lines[index]
    if "'" not in first and '"' not in first:
        return first, _tokens(first) or [], 1
    text = "\n".join(lines[index : index + _LONGEST_QUOTE])
    matched = _LOGICAL.match(text)
    whole = matched[0] if matched is not None else first
    closed = len(whole) == len(text) or text[len(whole)] == "\n"
    tokens = _tokens(whole) if closed else None
    return (first, tokens, whole.count("\n") + 1) if tokens is not None else (first, first.split(), 1)


def _tokens(text: str) -> list[str] | None:
    """The words and operators of a text; None when a quote is not closed."""
    masked = _masked(re.sub(r"&>>?|>&(?=\s*[\w/.])", ">", re.sub(r"\d?>&[\d-]", "", text)))
    lexer = shlex.shlex(masked, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return [_bare(token) for token in lexer]
    except ValueError:
        return None


def _masked(text: str) -> str:
    """The text with what stands inside of ``$( )`` made one word, and a ``#`` inside of a word a part of it."""
    text = re.sub(r"(?<=[^\s;&|(])#", _MASK["#"], text)
    if "$(" not in text:
        return text
    made, depth = [], 0
    for index, character in enumerate(text):
        if character == "(" and (depth or text[index - 1 : index] == "$"):
            depth += 1
        made.append(_MASK.get(character, character) if depth else character)
        if character == ")" and depth:
            depth -= 1
    return "".join(made)


def _bare(token: str) -> str:
    return token.translate(_UNMASK) if not token.isascii() else token
