"""What an expression of a script may stand for while nobody runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.source import Function

Value = Any
"""A constant, list or dict of Python, a PurePosixPath, or one of the classes below."""
_MOST_CHOICES = 8
LONGEST_TEXT = 16384
_LONGEST_LIST = 500
_LARGEST_NUMBER = 2**63
NUMBER, ANEW, LIBRARY, SETTINGS = "number", "anew", "library", "settings"
FIRST_HOLE = 0xF0000
"""Texts hold what is not known as one character of a private plane: Python's own functions of texts do the rest."""


@dataclass(eq=False)
class Unknown:
    """What only a run could tell. ``kind``: a number, a name that no other start has, an object of a library, or one
    that holds the script's settings.
    """

    name: str = ""
    kind: str = ""
    flag: Flag | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    hole: str = ""


@dataclass(eq=False)
class Absent:
    """A flag that is not given, and what it is then: None, False, or nothing."""

    flag: Flag
    value: Value
    hole: str = ""


@dataclass(eq=False)
class OneOf:
    """Several values, one of which it is."""

    values: tuple[Value, ...]


class Untold(list[Any]):
    """The empty list that a flag has which is not given: what fills it elsewhere changes it."""

    flag: Flag


class Table(dict[Any, Any]):
    """A dict whose keys are attributes, too, as EasyDict and yacs make them."""


@dataclass(eq=False)
class Frame:
    """The names of a function, a class body or a module."""

    names: dict[str, Value]
    file: str
    above: Frame | None = None
    outer: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    owner: ClassValue | None = None
    own: Value = None
    """``self`` of a method, for super()."""


@dataclass(eq=False)
class FunctionValue:
    """A function, with what it was given before: ``self``, or functools.partial's arguments."""

    node: Function | ast.Lambda
    frame: Frame
    owner: ClassValue | None = None
    given: tuple[Value, ...] = ()
    named: dict[str, Value] = field(default_factory=dict)
    kind: str = ""


@dataclass(eq=False)
class ClassValue:
    """A class of the script."""

    node: ast.ClassDef
    frame: Frame
    bases: list[Value]
    attributes: dict[str, Value]


@dataclass(eq=False)
class Instance:
    """An object of such a class."""

    kind: ClassValue
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class ModuleValue:
    """A module of the script."""

    frame: Frame


@dataclass(eq=False)
class Method:
    """A method of what Python itself has."""

    of: Value
    name: str


@dataclass(eq=False)
class File:
    """A file that is open, or what stands in it."""

    path: Value


def bounded(value: Value) -> Value:
    """The value; an Unknown for one that grows with every turn of a loop, as ``x = x + x`` does."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else Unknown()
    if isinstance(value, list | tuple):
        return value if len(value) <= _LONGEST_LIST else Unknown()
    return Unknown("", NUMBER) if isinstance(value, int) and abs(value) > _LARGEST_NUMBER else value


def same(one: Value, other: Value) -> bool:
    """Whether both are known to be equal."""
    plain = isinstance(one, str | int | float | PurePosixPath | None)
    return one is other or (plain and type(one) is type(other) and bool(one == other))


def join(values: Iterable[Value]) -> Value:
    """One of them."""
    found: list[Value] = []
    for value in values:
        for each in value.values if isinstance(value, OneOf) else (value,):
            if not any(same(each, other) for other in found):
                found.append(each)
    return found[0] if len(found) == 1 else OneOf(tuple(found[:_MOST_CHOICES])) if found else None


def choices(value: Value) -> tuple[Value, ...]:
    """All that it may be."""
    return value.values if isinstance(value, OneOf) else (value,)
