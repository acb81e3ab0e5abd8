"""A rule: its name, its level, what it looks at, and how it is written down.

A rule is a function that takes one kind of thing and the bundle and yields problems::

    @rule("REND003", Level.ERROR, on=Service)
    def not_ready_addresses(service: Service, bundle: Bundle) -> Iterator[Problem]: ...

Its page is ``pages/REND/REND003.md``; a rule without one does not load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem

Check = Callable[[Any, Bundle], Iterator[Problem]]
Found = TypeVar("Found", bound=Check)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Args:
        name: ``NCCL003``: a family in capitals and a number.
        level: of its problems, where they do not say another.
        on: what it looks at: Document, Workload, Pod, Container, Bundle or Unreadable.
        check: yields the problems.
    """

    name: str
    level: Level
    on: type
    check: Check

    @property
    def family(self) -> str:
        """``NCCL``."""
        return self.name.rstrip("0123456789")


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, filled when :mod:`argosy.workflows.lint.rules` is imported."""


def rule(name: str, level: Level, *, on: type) -> Callable[[Found], Found]:
    """Make a function a rule.

    Raises:
        ValueError: the name is taken.
    """

    def register(check: Found) -> Found:
        if name in RULES:
            raise ValueError(f"two rules are named {name}")
        RULES[name] = Rule(name, level, on, check)
        return check

    return register


def declare(name: str, level: Level, on: type = object) -> None:
    """Name a rule whose problems another part finds (reading, suppressions, one check with several rules)."""
    rule(name, level, on=on)(_finds_nothing)


def _finds_nothing(_: Any, __: Bundle) -> Iterator[Problem]:
    return iter(())
