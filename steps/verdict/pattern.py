"""One line of knowledge: a regular expression, what it means, and a line it must match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode


class Weight(IntEnum):
    """How much a line is believed; a greater weight wins over any number of smaller ones."""

    CASCADE = 1
    """Always the consequence of something else."""
    MESSENGER = 2
    """A root only when no process told of its own trouble: timeouts, missing peers."""
    GENERIC = 3
    """Some error of the program."""
    ROOT = 4
    """Names what went wrong."""
    MACHINE = 5
    """The machine itself: kernel, driver, hardware."""


@dataclass(frozen=True)
class Pattern:
    """A line that matches ``regex`` speaks for ``cause``.

    ``example`` is a line it must match (checked by the tests); ``code`` replaces the cause's usual exit code.
    """

    cause: Cause
    regex: str
    example: str
    weight: Weight = Weight.ROOT
    code: ExitCode | None = None

    def matches(self, line: str) -> bool:
        """Whether the line, without rank and time prefixes, matches anywhere."""
        return _compiled(self.regex).search(line) is not None


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    # Compiled when first used: the rank shim loads these tables and must start quickly.
    return re.compile(regex)
