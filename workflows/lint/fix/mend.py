"""Mend files until nothing that can be mended is left."""

from __future__ import annotations

import difflib
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from argosy.workflows.lint.finding import Edit, Finding, RenameKey
from argosy.workflows.lint.fix.meaning import comments, load, meant, paths
from argosy.workflows.lint.fix.text import CannotEdit, Change, Text
from argosy.workflows.manifests.reading import SourceFile, read_text

_MOST_ROUNDS = 20
_MOST_TRIALS = 6
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


def fixable(files: Iterable[SourceFile], found: Iterable[Finding]) -> set[Finding]:
    """The findings that ``--fix`` would mend, each file read once."""
    waiting: dict[str, list[Finding]] = defaultdict(list)
    for each in found:
        if each.edits:
            waiting[each.file].append(each)
    mended: set[Finding] = set()
    for file in files:
        rest = waiting[file.name]
        while rest and (accepted := _mend_file(file, rest)[1]):
            mended.update(accepted)
            rest = [each for each in rest if each not in mended]  # they were in the way of each other
    return mended


def _mend_file(file: SourceFile, found: list[Finding]) -> tuple[str, list[Finding]]:
    """(new text, what is mended in it); what cannot be applied beside the others waits for the next round."""
    try:
        trial = _Trial(file) if found else None
    except CannotEdit:
        trial = None
    if trial is None:
        return file.text, []
    candidates = trial.apart(found)
    text = file.text
    mended: list[Finding] = []
    groups = [candidates] if candidates else []
    while groups and trial.left:
        group = groups.pop()
        made = trial.after([*mended, *group])
        if made is not None:
            text, mended = made, [*mended, *group]
        elif len(group) > 1:  # find the one that does not go
            groups += [group[len(group) // 2 :], group[: len(group) // 2]]
    return text, mended


class _Trial:
    """A file, read once, on which edits are tried.

    Attributes:
        left: how often it may still be tried: each is a parse of the file.
    """

    def __init__(self, file: SourceFile) -> None:
        self.left = _MOST_TRIALS
        self._file = file
        self._text = Text(file.text)
        self._data = load(file.text)
        self._places = paths(file.roots)
        self._comments = comments(file.text)

    def apart(self, found: Iterable[Finding]) -> list[Finding]:
        """The findings whose edits can be written and do not touch each other's characters."""
        taken: list[tuple[int, int, str]] = []
        new_keys: dict[tuple[int, str], int] = {}
        kept = []
        for each in found:
            renamed = [edit for edit in each.edits if isinstance(edit, RenameKey) and edit.node.parent is not None]
            keys = {(id(edit.node.parent.yaml), edit.key): id(edit.node.yaml) for edit in renamed if edit.node.parent}
            if any(new_keys.setdefault(key, node) != node for key, node in keys.items()):
                continue  # two keys of a mapping would get one name
            try:
                changes = [(made.start, made.end, made.new) for made in map(self._text.change, each.edits)]
            except CannotEdit:
                continue
            if all(_free(change, taken) for change in changes):
                for change in changes:
                    insort(taken, change)
                kept.append(each)
        return kept

    def after(self, found: Iterable[Finding]) -> str | None:
        """The text after the edits; None when it would not be exactly what they mean."""
        self.left -= 1
        edits: list[Edit] = []
        seen = set()
        for edit in (edit for each in found for edit in each.edits):
            what = (type(edit), id(edit.node.yaml), str(edit))
            if what not in seen:
                seen.add(what)
                edits.append(edit)
        try:
            new = _apply(self._file.text, [self._text.change(edit) for edit in edits])
            wanted = meant(deepcopy(self._data), edits, self._places)
            if self._comments - comments(new) or load(new) != wanted:
                return None
            # A key written twice has the right data for a parser that takes the last.
            again = read_text(new.encode(), self._file.name).unreadable
            return new if len(again) <= len(self._file.unreadable) else None
        except (CannotEdit, KeyError, IndexError, TypeError):
            return None


def _free(change: tuple[int, int, str], taken: list[tuple[int, int, str]]) -> bool:
    """Whether a change touches none that is taken; the same one twice is one."""
    index = bisect_left(taken, change)
    before, after = taken[index - 1 : index] if index else [], taken[index : index + 1]
    if after == [change]:
        return True
    return all(each[1] <= change[0] for each in before) and all(change[1] <= each[0] for each in after)


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
