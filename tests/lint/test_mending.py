"""``--fix`` with the rules there are, over their own bad examples written in every style and full of comments."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.workflows.lint.finding import Finding
from argosy.workflows.lint.fix.mend import Mended, fixable, mend
from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.manifests.reading import SourceFile, read_text
from tests.lint.comments import with_comments

load()


def look(files: Sequence[SourceFile]) -> list[Finding]:
    return lint(files)


FIXABLE = [
    example.text
    for name in sorted(RULES)
    if page(name).fixable
    for example in page(name).bad
    if example.language == "yaml"
]
"""``test_pages.py`` sees that each page has one that is mended; another may be beyond mending."""


def mended(text: str) -> Mended:
    return mend([read_text(text.encode(), "example.yaml")], look)


@pytest.mark.parametrize("text", FIXABLE)
def test_a_bad_example_is_mended_once_and_for_all(text: str) -> None:
    outcome = mended(text)
    new = outcome.files[0]
    assert not fixable([new], outcome.findings)
    assert (new.text != text) == bool(outcome.mended)
    assert not outcome.mended or mended(new.text).files[0].text == new.text


@settings(max_examples=40)
@given(
    text=st.sampled_from(FIXABLE),
    flow=st.sampled_from([False, None, True]),
    indent=st.sampled_from([2, 4]),
    at=st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=8),
)
def test_comments_survive_in_every_style(text: str, flow: bool | None, indent: int, at: list[tuple[int, bool]]) -> None:
    documents = list(yaml.safe_load_all(text))
    styled = yaml.safe_dump_all(documents, default_flow_style=flow, indent=indent, sort_keys=False, width=200)
    commented, written = with_comments(styled, at)
    outcome = mended(commented)
    new = outcome.files[0]
    assert not new.unreadable
    for comment in written:
        assert comment in new.text, commented
    assert not fixable([new], outcome.findings), new.text
    assert mended(new.text).files[0].text == new.text
