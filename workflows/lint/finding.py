"""What a rule found, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from argosy.workflows.manifests.node import Node


class Level(IntEnum):
    """How bad: an error fails or hurts the run, a warning is likely to, a note is worth knowing."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """``error``, ``warning`` or ``note``."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Level:
        """The level of a word; ``KeyError`` for another word."""
        return cls[word.upper()]


@dataclass(frozen=True, slots=True)
class Remove:
    """Edit: delete a value together with its key, or a list's item."""

    node: Node


@dataclass(frozen=True, slots=True)
class SetValue:
    """Edit: write another value (a scalar, or a small list or mapping) in place of ``node``."""

    node: Node
    value: Any = field(hash=False)


@dataclass(frozen=True, slots=True)
class RenameKey:
    """Edit: another name for the key of ``node``."""

    node: Node
    key: str


@dataclass(frozen=True, slots=True)
class AddKey:
    """Edit: a new key at the end of the mapping ``node``, which must exist."""

    node: Node
    key: str
    value: Any = field(hash=False)


Edit = Remove | SetValue | RenameKey | AddKey


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule yields.

    Args:
        node: where; for something that is missing, the node that should hold it (or the missing node itself).
        message: what is wrong, with the value, in one sentence without a full stop.
        remedy: what to write instead, in one sentence without a full stop.
        edits: a safe mend, only where the meaning of everything else stays; empty where a person must decide.
        level: another level than the rule's own.
        inside: for text of several lines (a script), the piece of the text that is meant.
        rule: the rule's name where one check finds for several.
        cause: what ends several of a rule's problems in one object at once; empty: their equal words say so.
        drafted: the object is of a version that never was.
    """

    node: Node
    message: str
    remedy: str
    edits: Sequence[Edit] = ()
    level: Level | None = None
    inside: str = ""
    rule: str = ""
    cause: str = ""
    drafted: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a rule, with its place in a file; lines and columns count from 1."""

    rule: str
    level: Level
    file: str
    line: int
    column: int
    end_column: int
    message: str
    remedy: str
    edits: tuple[Edit, ...] = field(default=(), compare=False)

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN``."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """By place, then by rule; two of a rule in one place by their words, so that each run says the same."""
        return self.file, self.line, self.column, self.rule, self.message
