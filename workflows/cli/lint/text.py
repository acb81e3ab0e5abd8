"""Findings for a person: the line of the file, a caret below the place, and what to write instead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import click

from argosy.workflows.cli.output import harmless
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.manifests.reading import SourceFile

_COLOUR: Final = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}
_WIDEST: Final = 160
_PLACES: Final = 8
"""Places that are named; --format json has all."""


def as_text(findings: Sequence[Finding], files: Sequence[SourceFile]) -> Iterator[str]:
    """One paragraph per finding; what is said in the same words of other places is said once, and names them."""
    lines = {file.name: file.text.split("\n") for file in files}
    same: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        same[finding.rule, finding.level, finding.message, finding.remedy].append(finding)
    for first, *others in same.values():
        paragraph = [*_paragraph(first, lines[first.file])]
        if others:
            places = ", ".join(harmless(f"{each.file}:{each.line}") for each in others[:_PLACES])
            more = f" and {len(others) - _PLACES} more" if len(others) > _PLACES else ""
            paragraph.append(f"  the same in {places}{more}")
        yield "\n".join(paragraph) + "\n"


def _paragraph(finding: Finding, lines: list[str]) -> Iterator[str]:
    colour = _COLOUR[finding.level]
    head = click.style(f"{finding.level.word}[{finding.rule}]", fg=colour, bold=True)
    yield f"{head}: {harmless(finding.message)}"
    number = str(finding.line)
    margin = " " * len(number)
    bar = click.style("|", fg="blue")
    yield f"{margin}{click.style('-->', fg='blue')} {harmless(finding.place)}"
    line = lines[finding.line - 1].rstrip("\r") if finding.line <= len(lines) else ""
    if line.strip():
        start, shown = _window(line, finding.column - 1)
        width = max(1, min(finding.end_column, len(line) + 1) - finding.column)
        width = min(width, len(shown) - (finding.column - 1 - start)) or 1
        yield f"{margin} {bar}"
        yield f"{click.style(number, fg='blue')} {bar} {harmless(shown.expandtabs(1))}"
        caret = click.style("^" * max(1, width), fg=colour, bold=True)
        yield f"{margin} {bar} {' ' * (finding.column - 1 - start)}{caret}"
    yield f"{margin} {click.style('=', fg='blue')} {harmless(finding.remedy)}"


def _window(line: str, column: int) -> tuple[int, str]:
    """(first column, text) of the part of a long line that holds the place."""
    if len(line) <= _WIDEST:
        return 0, line
    start = max(0, min(column - _WIDEST // 3, len(line) - _WIDEST))
    return start, line[start : start + _WIDEST]


def summary(findings: Sequence[Finding], files: int, fixable: int) -> str:
    """``2 errors and 1 warning in 3 files; 1 can be mended with --fix``."""
    counts = Counter(finding.level for finding in findings)
    told = [_many(counts[level], level.word) for level in sorted(Level, reverse=True) if counts[level]]
    found = _and(told) if told else "nothing found"
    mend = f"; {fixable} can be mended with --fix" if fixable else ""
    return f"{found} in {_many(files, 'file')}{mend}"


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
