"""What the linter of the environment says: a finding, and the change that mends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Remove:
    """Take ``variable`` out of the environment."""

    variable: str


@dataclass(frozen=True)
class Rename:
    """Give ``variable`` the name ``new``; the value stays. Never offered while ``new`` is set already."""

    variable: str
    new: str


@dataclass(frozen=True)
class Set:
    """Give ``variable`` the value ``value``; it is added where it is not set."""

    variable: str
    value: str


Fix = Remove | Rename | Set


@dataclass(frozen=True)
class EnvironmentFinding:
    """One fault of an environment.

    ``variables``: the names it is about, the one to point at first; that one may be absent from the environment
    when a rule asks for it. ``fix``: only where the change is safe without asking.
    """

    rule: str
    level: Level
    variables: tuple[str, ...]
    message: str
    remedy: str
    fix: Fix | None = None
