"""A rule's page is its first test: found in the bad example, and nothing wrong in the mended one."""

from __future__ import annotations

from importlib.resources import files

import pytest

from argosy.workflows.cli.lint.description import read_description
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import Example, page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.manifests.reading import read_text

load()


def findings(example: Example) -> list[Finding]:
    if example.language == "toml":
        source, given = read_description(example.text.encode(), "run.toml")
        return lint([source], given=given)
    return lint([read_text(example.text.encode(), "example.yaml")])


def shown(found: list[Finding]) -> str:
    return "\n".join(f"{each.place} {each.level.word}[{each.rule}] {each.message}" for each in found)


@pytest.mark.parametrize("rule", RULES)
def test_a_page_is_true(rule: str) -> None:
    """Each example is read once: the rule is found in the bad one, mended if so promised; the good one is good."""
    held = page(rule)
    assert held.level == RULES[rule].level.word
    assert held.bad
    assert held.good
    mended = False
    for example in held.bad:
        found = findings(example)
        assert rule in {each.rule for each in found}, shown(found)
        mended = mended or any(each.edits for each in found if each.rule == rule)
    assert mended == held.fixable
    for example in held.good:
        wrong = [each for each in findings(example) if each.level > Level.NOTE or each.rule == rule]
        assert not wrong, shown(wrong)


def test_every_page_belongs_to_a_rule() -> None:
    held = files("argosy.workflows.lint").joinpath("pages")
    names = {file.name.removesuffix(".md") for folder in held.iterdir() for file in folder.iterdir()}
    assert names == set(RULES)
