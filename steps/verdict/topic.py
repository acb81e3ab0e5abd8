"""What a line is about, where no rule knows its words: a noun of one cause beside a verb of its kind of trouble."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from argosy.steps.contract.causes import Cause


@dataclass(frozen=True)
class Topic:
    """A line with a match of ``about`` and one of ``trouble``, in any order, is about ``cause``.

    ``example`` is a line that no rule knows and that this topic is the first to take (checked by the tests).
    """

    cause: Cause
    about: str
    trouble: str
    example: str

    def matches(self, line: str) -> bool:
        """Whether the line, without prefixes, is about this cause; case does not count."""
        return all(_compiled(regex).search(line) is not None for regex in (self.trouble, self.about))


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.IGNORECASE)
