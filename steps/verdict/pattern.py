"""One line of knowledge: a regular expression, what it means, and a line it must match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight


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
    # Compiled when first used: most processes that load these tables read no log.
    return re.compile(regex)
