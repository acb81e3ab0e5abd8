"""A word of a command line: where it is written, and what variables it takes its value from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from argosy.workflows.manifests.node import Node

FILL_IN: Final = "FILL-IN"
"""What stands in run.toml for a value that the manifest does not hold."""
_REFERENCE: Final = re.compile(r"\$\$\(|\$\(([A-Za-z_][\w.-]*)\)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word.

    Args:
        text: what is written: the value of a literal, the source of anything else.
        variable: the name behind ``$X``, ``${X:-1}`` and ``$(X)``; ``""`` for a literal.
        default: what ``${X:-default}`` says.
        bare: outside of quotes: the shell splits its value at spaces.
        unknown: only a running shell knows the value (``$(date)``, ``*``).
    """

    text: str
    variable: str = ""
    default: str | None = None
    bare: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command.

    Args:
        pieces: its parts.
        node: the value that holds it.
        part: how it is written there, when that value holds more than this word; else ``""``.
    """

    pieces: tuple[Piece, ...]
    node: Node
    part: str = ""

    @property
    def literal(self) -> str | None:
        """Its text; None when a variable is in it."""
        if any(piece.variable or piece.unknown for piece in self.pieces):
            return None
        return "".join(piece.text for piece in self.pieces)

    @property
    def source(self) -> str:
        """Its text as it is written, variables and all."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(slots=True)
class Values:
    """What variables hold where a command is started.

    Args:
        known: values by name; None: set, but not known here.
        positional: words after ``bash -c SCRIPT NAME``.
        set_by: how names that the launcher sets are called in a message.
    """

    known: dict[str, str | None] = field(default_factory=dict)
    positional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """A word with the values of its variables.

    Args:
        words: one, or what the shell splits it into.
        missing: what has no value in the files, as it is written.
        used: variables whose values are in it now.
    """

    words: list[str]
    missing: list[str]
    used: list[str]


def fill(word: Word, values: Values) -> Filled:
    """The word with the values of its variables, :data:`FILL_IN` for those that are not known."""
    words, missing, used = [""], [], []
    started = False
    for piece in word.pieces:
        if piece.variable in ("@", "*"):
            first, *rest = values.positional[1:] or [""]
            started = started or bool(values.positional[1:])
            words[-1] += first
            words.extend(rest)
            continue
        value = _value(piece, values)
        if value is None:
            missing.append(piece.text)
            value = FILL_IN
        elif piece.variable:
            used.append(piece.variable)
        splits = piece.bare and piece.variable and value != FILL_IN
        parts = value.split() if splits else [value]
        started = started or bool(parts) or not splits
        words[-1] += parts[0] if parts else ""
        words.extend(parts[1:])
    return Filled(words if started else [], missing, used)


def _value(piece: Piece, values: Values) -> str | None:
    if piece.unknown:
        return None
    if not piece.variable:
        return piece.text
    if piece.variable.isdigit():
        number = int(piece.variable[:4])
        return values.positional[number] if number < len(values.positional) else piece.default or ""
    if piece.variable in values.known:
        held = values.known[piece.variable]
        return piece.default if held == "" and piece.default is not None else held
    return piece.default


def of_argv(node: Node, names: Mapping[str, object] | None = None) -> Word:
    """A word that no shell reads: the kubelet fills in ``$(X)`` where X is a variable of the container."""
    pieces: list[Piece] = []
    text, end = node.text, 0
    for found in _REFERENCE.finditer(text):
        if found[1] is None or (names is not None and found[1] not in names):
            literal = "$(" if found[1] is None else found[0]
            pieces.append(Piece(text[end : found.start()] + literal))
        else:
            pieces += [Piece(text[end : found.start()]), Piece(found[0], variable=found[1])]
        end = found.end()
    pieces.append(Piece(text[end:]))
    return Word(tuple(piece for piece in pieces if piece.text) or (Piece(""),), node)


def kubelet_filled(text: str, names: Mapping[str, object]) -> str:
    """A script as the shell gets it: ``$(X)`` of a variable of the container is that variable."""

    def shell(found: re.Match[str]) -> str:
        if found[1] is None:
            return "$("
        return f"${{{found[1]}}}" if found[1] in names else found[0]

    return _REFERENCE.sub(shell, text)


def join(words: Sequence[Word]) -> list[Word]:
    """Words of one value as one word, so that an account says one thing of them."""
    found: list[Word] = []
    for word in words:
        if found and word.part and found[-1].part and found[-1].node.yaml is word.node.yaml:
            before = found.pop()
            found.append(Word((*before.pieces, *word.pieces), word.node, f"{before.part} {word.part}"))
        else:
            found.append(word)
    return found
