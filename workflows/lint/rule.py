"""A rule: its name, its level, what it looks at, and how it is written down.

A rule is a function that takes one kind of thing, and the bundle where it looks at other objects, and yields problems::

    @rule("REND003", Level.ERROR, on=Service)
    def not_ready_addresses(service: Service, bundle: Bundle) -> Iterator[Problem]: ...

Its page is ``pages/REND/REND003.md``; a rule without one does not load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, TypeVar

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.manifests.bundle import Bundle

Check = Callable[[Any, Bundle], Iterator[Problem]]
Found = TypeVar("Found", bound=Callable[..., Iterator[Problem]])


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Args:
        name: ``NCCL003``: a family in capitals and a number.
        level: of its problems, where they do not say another.
        checks: what yields the problems, by what it looks at: Document, Workload, ArgoWorkflow, Pod, Container, Bundle.
    """

    name: str
    level: Level
    checks: dict[type, Check]

    @property
    def family(self) -> str:
        """``NCCL``."""
        return self.name.rstrip("0123456789")


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, filled when :mod:`argosy.workflows.lint.rules` is imported."""


def declare(name: str, level: Level) -> None:
    """Name a rule whose problems another part finds (reading, suppressions, one check with several rules).

    Raises:
        ValueError: the name is taken.
    """
    if name in RULES:
        raise ValueError(f"two rules are named {name}")
    RULES[name] = Rule(name, level, {})


def rule(name: str, level: Level, *, on: type) -> Callable[[Found], Found]:
    """Make a function a rule."""
    declare(name, level)
    return also(name, on=on)


def also(name: str, *, on: type) -> Callable[[Found], Found]:
    """Make a function another check of a rule, which looks at other things."""

    def register(check: Found) -> Found:
        RULES[name].checks[on] = _with_bundle(check)
        return check

    return register


def _with_bundle(check: Callable[..., Iterator[Problem]]) -> Check:
    """The check as it is called: one that looks at its thing alone takes no bundle."""
    return check if len(signature(check).parameters) == 2 else lambda thing, _: check(thing)
