"""``# argosy: ignore[NCCL003] the reason``: on the finding's line, or alone on the lines before it.

``# argosy: ignore-file[…] the reason`` holds for the whole file. One without a reason suppresses nothing: whoever reads
the manifest next must be able to tell why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.rule import RULES
from argosy.workflows.manifests.reading import SourceFile

_COMMENT: Final = re.compile(r"#\s*argosy:\s*ignore(?P<file>-file)?\s*(?:\[(?P<rules>[^\]]*)\])?[:\s]*(?P<reason>.*)$")


@dataclass(slots=True)
class Suppression:
    """One comment.

    Args:
        line: where it stands, from 1.
        covers: lines whose findings it hides; empty for the whole file.
    """

    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    covers: frozenset[int]
    used: set[str] = field(default_factory=set)

    def hides(self, finding: Finding) -> bool:
        """Whether the finding is one of those that it is about."""
        if not self.reason or (self.covers and finding.line not in self.covers):
            return False
        matching = [name for name in self.rules if finding.rule == name or finding.rule.rstrip("0123456789") == name]
        self.used.update(matching)
        return bool(matching)


def suppressions(source: SourceFile) -> list[Suppression]:
    """The comments of a file."""
    found: list[Suppression] = []
    if "argosy:" not in source.text:
        return found
    lines = source.text.split("\n")
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is not None:
            names = tuple(name.strip() for name in (match["rules"] or "").split(",") if name.strip())
            covers = frozenset() if match["file"] else frozenset(_covered(lines, number, match.start()))
            found.append(Suppression(number, match.start() + 1, names, match["reason"].strip(), covers))
    return found


def _covered(lines: list[str], number: int, column: int) -> Iterator[int]:
    yield number
    if lines[number - 1][:column].strip():
        return
    following = number
    while following < len(lines) and lines[following].lstrip().startswith("#"):
        following += 1
    yield following + 1


def judge(found: list[Suppression], file: str) -> Iterator[Finding]:
    """What is wrong with the comments themselves, after the findings have been asked for."""
    for each in found:
        place = (file, each.line, each.column, each.column + 1)
        if not each.reason or not each.rules:
            message = "a suppression without a reason" if each.rules else "a suppression that names no rule"
            remedy = "write: # argosy: ignore[RULE] why it is right here"
            yield Finding("LINT001", Level.WARNING, *place, message, remedy)
            continue
        families = {rule.family for rule in RULES.values()}
        for name in each.rules:
            if name not in RULES and name not in families:
                yield Finding(
                    *("LINT002", Level.WARNING, *place),
                    f"a suppression of {name}, which is no rule",
                    "argosy lint --list shows the rules",
                )
            elif name not in each.used:
                yield Finding("LINT003", Level.NOTE, *place, f"{name} is not found here any more", "remove the comment")
