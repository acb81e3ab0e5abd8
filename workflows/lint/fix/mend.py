"""Mend files until nothing that can be mended is left."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from argosy.workflows.lint.finding import Edit, Finding
from argosy.workflows.lint.fix.meaning import comments, load, meant, paths
from argosy.workflows.lint.fix.text import CannotEdit, Change, Text
from argosy.workflows.lint.reading import SourceFile, read_text

_MOST_ROUNDS = 20
Lint = Callable[[Sequence[SourceFile]], list[Finding]]


@dataclass(frozen=True, slots=True)
class Mended:
    """What came of it.

    Args:
        files: all files, the mended ones with their new text.
        findings: what is left.
        mended: the findings that were mended, in the order of the rounds.
    """

    files: list[SourceFile]
    findings: list[Finding]
    mended: list[Finding]


def mend(files: Sequence[SourceFile], lint: Lint) -> Mended:
    """Apply the edits of the findings, read again, and so on: one mend may make another possible.

    Args:
        files: as they were read; nothing is written.
        lint: finds what is wrong in files.
    """
    current, done = list(files), []
    found = lint(current)
    for _ in range(_MOST_ROUNDS):
        applied: list[Finding] = []
        for index, file in enumerate(current):
            text, mended = _mend_file(file, [each for each in found if each.file == file.name and each.edits])
            if mended:
                current[index] = read_text(text.encode(), file.name)
                applied.extend(mended)
        if not applied:
            break
        done.extend(applied)
        found = lint(current)
    return Mended(current, found, done)


def fixable(file: SourceFile, finding: Finding) -> bool:
    """Whether ``--fix`` would mend it."""
    return bool(finding.edits) and _try(file, finding.edits) is not None


def _mend_file(file: SourceFile, found: list[Finding]) -> tuple[str, list[Finding]]:
    edits: list[Edit] = []
    mended: list[Finding] = []
    for finding in found:  # one that cannot be applied beside the others waits for the next round
        new = [edit for edit in finding.edits if not any(_same(edit, other) for other in edits)]
        if _try(file, [*edits, *new]) is not None:
            edits.extend(new)
            mended.append(finding)
    text = _try(file, edits) if edits else None
    return (text, mended) if text is not None else (file.text, [])


def _same(one: Edit, other: Edit) -> bool:
    if type(one) is not type(other) or one.node.yaml is not other.node.yaml:
        return False
    return all(getattr(one, name) == getattr(other, name) for name in one.__slots__ if name != "node")


def _try(file: SourceFile, edits: Sequence[Edit]) -> str | None:
    """The text after the edits; None when it would not be exactly what they mean."""
    text = Text(file.text)
    try:
        new = _apply(file.text, [text.change(edit) for edit in edits])
        wanted = meant(deepcopy(load(file.text)), edits, paths(file.roots))
        kept = not (comments(file.text) - comments(new))
        if not kept or load(new) != wanted:
            return None
        # A key written twice has the right data for a parser that takes the last.
        return new if len(read_text(new.encode(), file.name).unreadable) <= len(file.unreadable) else None
    except (CannotEdit, KeyError, IndexError, TypeError):
        return None


def _apply(text: str, changes: list[Change]) -> str:
    behind = len(text) + 1
    for change in sorted(changes, key=lambda each: (each.start, each.end), reverse=True):
        if change.end > behind:
            raise CannotEdit("two edits of one place")
        text = text[: change.start] + change.new + text[change.end :]
        behind = change.start
    return text


def diff(before: SourceFile, after: SourceFile) -> str:
    """The unified diff of a file."""
    lines = difflib.unified_diff(
        before.text.splitlines(keepends=True),
        after.text.splitlines(keepends=True),
        f"a/{before.name.lstrip('/')}",
        f"b/{after.name.lstrip('/')}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
