"""YAML that gives back what went in, in every reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.workflows.yaml_text import to_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TREE = st.recursive(
    TEXT | st.integers(-(10**9), 10**9) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(bool), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200)
@given(tree=st.dictionaries(TEXT.filter(bool), TREE, max_size=4))
def test_round_trip(tree: dict[str, Any]) -> None:
    text = to_yaml(tree)
    assert yaml.safe_load(text) == tree
    assert text.isascii()


@settings(max_examples=100)
@given(tree=st.dictionaries(TEXT.filter(bool), TREE, max_size=3))
def test_a_document_in_a_block_comes_back(tree: dict[str, Any]) -> None:
    inner = to_yaml(tree)
    assert yaml.safe_load(to_yaml({"data": inner}))["data"] == inner


@pytest.mark.parametrize(
    "text", ["1e3", "1E-5", "0o17", "0x1F", "1_000", ".5", "5.", "y", "N", "no", "null", "~", "2024-01-01"]
)
def test_what_go_would_misread_is_quoted(text: str) -> None:
    assert to_yaml({"value": text}) in (f'value: "{text}"\n', f"value: '{text}'\n")


def test_names_come_first() -> None:
    assert to_yaml({"b": 1, "name": "x", "a": 2}) == "name: x\nb: 1\na: 2\n"


def test_small_things_stand_on_one_line_and_lists_of_maps_do_not() -> None:
    document = {
        "args": ["x" * 60, "y" * 60],
        "command": ["python", "-m", "x"],
        "env": [{"name": "A", "value": "1"}],
        "limits": {"memory": {"at": "most"}},
        "raw": {"data": "a: 1\nb: 2\n"},
        "none": {},
    }
    assert to_yaml(document) == (
        f"command: [python, -m, x]\nargs:\n- {'x' * 60}\n- {'y' * 60}\n"
        'env:\n- {name: A, value: "1"}\nlimits: {memory: {at: most}}\nraw:\n  data: |\n    a: 1\n    b: 2\nnone: {}\n'
    )
