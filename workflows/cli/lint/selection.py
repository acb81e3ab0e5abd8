"""Which rules are asked for: ``--select NCCL,REND003``, ``--ignore SEC``, ``--level warning``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from argosy.steps.contract.errors import InputError
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load

_RULE = re.compile(r"[0-9]{3}$")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules by name or family; empty ``select``: all."""

    select: frozenset[str]
    ignore: frozenset[str]
    level: Level

    @classmethod
    def of(cls, select: Sequence[str], ignore: Sequence[str], level: str) -> Selection:
        """Read the options.

        Raises:
            InputError: a name is neither a rule nor a family. Of one to ignore that looks like a rule it is only said.
        """
        return cls(_names("--select", select), _names("--ignore", ignore), Level.of(level))

    def wants(self, rule: str) -> bool:
        """Whether the rule is asked for."""
        both = {rule, rule.rstrip("0123456789")}
        return (not self.select or bool(both & self.select)) and not both & self.ignore

    def shows(self, finding: Finding) -> bool:
        """Whether the finding's level is asked for."""
        return finding.level >= self.level


def _names(option: str, given: Sequence[str]) -> frozenset[str]:
    load()
    known = {*RULES, *(rule.family for rule in RULES.values())}
    names = {name.strip().upper() for each in given for name in each.split(",") if name.strip()}
    for name in sorted(names - known):
        if option == "--ignore" and _RULE.sub("", name) in known:  # rules go, and a CI that ignored one goes on
            print(f"argosy: {option} {name}: there is no such rule now", file=sys.stderr)
            continue
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the families are {', '.join(_families())}"
        raise InputError(f"{option} {name}: there is no such rule or family; {hint} (argosy lint --list shows all)")
    return frozenset(names)


def _families() -> list[str]:
    return sorted({rule.family for rule in RULES.values()})
