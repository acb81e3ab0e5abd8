"""Manifests in the style of the vendors' recipes: no error, and no warning that is not listed here with its reason."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_file

FOLDER = Path(__file__).parent / "vendors"
FILES = sorted(FOLDER.glob("*.yaml"))
KNOWN: dict[str, list[str]] = {
    # No queue and no PodGroup: a recipe for one cluster with one user.
    "aws-efa-pytorchjob.yaml": ["GANG012"],
    "aws-p5-efa-pytorchjob-fsdp.yaml": ["GANG012"],
    # Workers only and no elasticPolicy: the Training Operator's source sets nobody's address then.
    "envsubst-eks-pytorchjob.yaml": ["REND011"],
}


def of_file(path: Path) -> list[Finding]:
    return lint([read_file(path, path.name)])


def test_there_are_as_many_as_the_bar_asks() -> None:
    assert len(FILES) >= 45
    assert not [path.name for path in FILES if not read_file(path).documents]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_vendors_recipe_has_no_errors_and_known_warnings(path: Path) -> None:
    found = of_file(path)
    assert not [f"{each.place} {each.rule} {each.message}" for each in found if each.level is Level.ERROR]
    warnings = {each.rule for each in found if each.level is Level.WARNING}
    assert sorted(warnings) == KNOWN.get(path.name, [])


def test_notes_stay_few() -> None:
    """A rule that speaks of every second recipe says nothing."""
    heard: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        for each in of_file(path):
            heard[each.rule].add(path.name)
    loud = {rule: len(files) for rule, files in heard.items() if len(files) > len(FILES) // 2}
    assert not loud
