"""Manifests in the style of public guides, each with several faults: lint finds all of them, and no error besides.

The head of each file says what is wrong where: ``# LINE RULE: why``, and ``# LINE RULE (note): why`` of what does not
ruin a run, or may be right by what stands elsewhere; all else is seen at the default level.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_file

GUIDES = sorted(Path(__file__).with_name("guides").glob("*.yaml"))
_EXPECTED = re.compile(r"# (\d+) ([A-Z]+\d+)( \(note\))?(?:: .+)?")


def expected(path: Path) -> dict[tuple[int, str], bool]:
    """(line, rule) of the faults that the file's head names, and whether each is a note."""
    head = path.read_text("utf-8").split("---", 1)[0].splitlines()
    found = [_EXPECTED.fullmatch(line) for line in head]
    assert all(found), f"{path.name}: a line of the head is not '# LINE RULE: why'"
    return {(int(each[1]), each[2]): bool(each[3]) for each in found if each is not None}


def places(findings: list[Finding]) -> set[tuple[int, str]]:
    """(line, rule) of the findings, and of the places that one of them stands for."""
    found = {(each.line, each.rule) for each in findings}
    for each in findings:
        also = re.search(r"\(also on lines? ([\d, ]+)\)$", each.message)
        found |= {(int(line), each.rule) for line in also[1].split(", ")} if also is not None else set()
    return found


def test_there_are_guides() -> None:
    assert len(GUIDES) >= 25
    assert all(len(expected(path)) >= 4 for path in GUIDES)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_every_fault_of_a_guide_is_found(path: Path) -> None:
    wanted = expected(path)
    findings = lint([read_file(path)])
    assert wanted.keys() <= places(findings)
    seen = places([each for each in findings if each.level > Level.NOTE])
    assert {place for place, note in wanted.items() if not note} == wanted.keys() & seen
    errors = places([each for each in findings if each.level is Level.ERROR])
    assert errors <= wanted.keys()
