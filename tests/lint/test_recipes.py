"""Manifests in the style of the vendors' current recipes: they run, so nothing in them is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_file

RECIPES = sorted(Path(__file__).with_name("recipes").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_no_errors(path: Path) -> None:
    file = read_file(path)
    assert file.documents
    wrong = [each for each in lint([file]) if each.level is Level.ERROR]
    assert not wrong, "\n".join(f"{each.place} {each.rule} {each.message}" for each in wrong)
