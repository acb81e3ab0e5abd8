"""``--fix`` changes what it means to change, in any style of YAML, and keeps every comment and every other byte."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.workflows.lint.finding import AddKey, Edit, Finding, Level, Remove, RenameKey, SetValue
from argosy.workflows.lint.fix.mend import fixable, mend
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.reading import SourceFile, read_text
from tests.lint.comments import with_comments


def find(files: Sequence[SourceFile]) -> list[Finding]:
    """Wants no 'gone' key, no item 'gone', 'new' for 'old', 2 for 'one', and a 'made' beside each 'wants'."""
    found = []
    for file in files:
        for root in file.roots:
            for node in root.walk():
                for edit in _edits(node):
                    line, column, end = node.mark
                    found.append(Finding("X", Level.ERROR, file.name, line, column, end, "m", "r", (edit,)))
    return found


def _edits(node: Node) -> list[Edit]:
    if node.key == "gone" or node.text == "gone" or (node.is_mapping and node["name"].text == "gone"):
        return [Remove(node)]
    if node.key == "old":
        return [RenameKey(node, "new")]
    if node.key == "one" and node.text == "1":
        return [SetValue(node, "2: two")]
    if node.is_mapping and "wants" in node and "made" not in node:
        return [AddKey(node, "made", [{"a": 1}])]
    return []


def fixed(text: str) -> str:
    outcome = mend([read_text(text.encode(), "x.yaml")], find)
    return outcome.files[0].text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\ngone: 2\nb: 3\n", "a: 1\nb: 3\n"),
        ("a: 1\ngone:\n  deep: [1, 2]\n  more: x\n# of b\nb: 3\n", "a: 1\n# of b\nb: 3\n"),
        ("a: 1\ngone: 2  # why\nb: 3\n", "a: 1\n# why\nb: 3\n"),
        ("a:\n- gone\n- b\n", "a:\n- b\n"),
        ("a:\n  - name: gone\n    value: x\n  - name: b\n", "a:\n  - name: b\n"),
        ("a:\n  - name: gone\n    value: x\nb: 1\n", "b: 1\n"),
        ("a: [gone, b, gone]\nb: 1\n", "a: [b]\nb: 1\n"),
        ("a: {gone: 1, b: 2}\n", "a: {b: 2}\n"),
        ("a: {b: 2, gone: 1}\n", "a: {b: 2}\n"),
        ("- old: 1  # c\n  x: 2\n", "- new: 1  # c\n  x: 2\n"),
        ("- gone: 1\n  x: 2\n", "- x: 2\n"),
        ('x: "a"\none: "1"\n', 'x: "a"\none: "2: two"\n'),
        ("one: 1 # c\n", "one: '2: two' # c\n"),
        ("wants: 1\n# end\n", "wants: 1\nmade:\n- a: 1\n# end\n"),
        ("a:\n  wants: |\n    text\n    # no comment\n\nb: 1\n", None),
        ("a: {wants: 1}\n", "a: {wants: 1, made: [{a: 1}]}\n"),
        ("b:\n- wants: 1\n  c: 2", "b:\n- wants: 1\n  c: 2\n  made:\n  - a: 1\n"),
        ("a: &x {gone: 1, b: 2}\nc: *x\n", "a: &x {gone: 1, b: 2}\nc: *x\n"),  # an alias: two places at once
        ("one:\n  x: gone\n  wants: 1\ngone:\n- x: gone\n  wants: 1\n", "one:\n  wants: 1\n  made:\n  - a: 1\n"),
        ("a: 1\r\ngone: 2\r\nb: 3\r\n", "a: 1\r\nb: 3\r\n"),
    ],
)
def test_an_edit_changes_its_own_characters_only(before: str, after: str | None) -> None:
    text = fixed(before)
    if after is not None:
        assert text == after
    else:
        assert yaml.safe_load(text)["a"]["made"] == [{"a": 1}]
        assert "# no comment" in text
    assert fixed(text) == text


NAMES = st.sampled_from(["gone", "old", "one", "wants", "a", "b", "name", "env"])
SCALARS = st.sampled_from(["gone", "1", "x y", "true", "# no comment", "it's", "a: b", "", "-1", "{{x}}", "é"])
DATA = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=4) | st.dictionaries(NAMES, below, max_size=4), max_leaves=14
)
COMMENTS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=6)


@settings(max_examples=150)
@given(
    documents=st.lists(st.dictionaries(NAMES, DATA, min_size=1, max_size=4), min_size=1, max_size=3),
    flow=st.sampled_from([False, None]),
    indent=st.sampled_from([2, 4]),
    style=st.sampled_from([None, '"', "'"]),
    at=COMMENTS,
)
def test_twice_is_once_and_comments_stay(
    documents: list[object], flow: bool | None, indent: int, style: str | None, at: list[tuple[int, bool]]
) -> None:
    text = yaml.safe_dump_all(documents, default_flow_style=flow, indent=indent, default_style=style, sort_keys=False)
    text, written = with_comments(text, at)
    outcome = mend([read_text(text.encode(), "x.yaml")], find)
    new = outcome.files[0]
    assert not new.unreadable, text
    for comment in written:
        assert comment in new.text, text
    assert not fixable([new], outcome.findings), new.text
    assert fixed(new.text) == new.text
