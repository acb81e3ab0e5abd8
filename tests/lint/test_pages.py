"""A rule's page is its first test: found in the bad example, and nothing wrong in the good one."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from argosy.workflows.cli.lint.description import read_description
from argosy.workflows.lint.finding import Finding, Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import Example, page
from argosy.workflows.lint.reading import read_text
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load

load()


def findings(example: Example) -> list[Finding]:
    if example.language == "toml":
        source, given = read_description(example.text.encode(), "run.toml")
        return lint([source], given=given)
    return lint([read_text(example.text.encode(), "example.yaml")])


def shown(found: list[Finding]) -> str:
    return "\n".join(f"{each.place} {each.level.word}[{each.rule}] {each.message}" for each in found)


@pytest.mark.parametrize("rule", RULES)
def test_a_page_says_what_the_rule_is(rule: str) -> None:
    found = page(rule)
    assert found.level == RULES[rule].level.word
    assert all(re.match(r"https?://\S+\.\S+", source) for source in found.sources)
    assert found.bad
    assert found.good
    assert "## Why" in found.text


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_is_found_in_each_bad_example(rule: str) -> None:
    for example in page(rule).bad:
        found = findings(example)
        assert rule in {each.rule for each in found}, shown(found)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_wrong_in_a_good_example(rule: str) -> None:
    for example in page(rule).good:
        wrong = [each for each in findings(example) if each.level > Level.NOTE or each.rule == rule]
        assert not wrong, shown(wrong)


@pytest.mark.parametrize("rule", list(RULES))
def test_a_page_promises_a_fix_only_where_there_is_one(rule: str) -> None:
    found = page(rule)
    mended = any(each.edits for example in found.bad for each in findings(example) if each.rule == rule)
    assert mended == found.fixable


def test_every_page_belongs_to_a_rule() -> None:
    held = files("argosy.workflows.lint").joinpath("pages")
    names = {file.name.removesuffix(".md") for folder in held.iterdir() for file in folder.iterdir()}
    assert names == set(RULES)
