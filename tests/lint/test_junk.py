"""No rule falls over anything that is YAML: every value of the pages' examples becomes something else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.manifests.reading import read_text

load()
LARGE = 5_000
JUNK: list[Any] = [None, [], {}, "", "x", -1, 1.5, True, [None], {"a": None}, "{{x}}", [[1]], [{}],
                   "$(X) ${Y:-z} '"]  # fmt: skip


def mutants(document: Any, turn: int) -> Iterator[Any]:
    """The document with one value replaced, for every third value of it; another third and other junk each turn."""
    for number, path in enumerate(places(document, ())):
        if number % 3 != turn % 3:
            continue
        junk = JUNK[(number + turn) % len(JUNK)]
        if not path:
            yield junk
            continue
        changed = copy.deepcopy(document)
        held = changed
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = junk
        yield changed


def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from places(below, (*path, key))


@pytest.mark.parametrize("family", ["API", "ARGO", "ARGV", "MEM", "RAY", "REND", "SEC", "STORE"])
def test_no_rule_falls_over_junk(family: str) -> None:
    texts = []
    for name in sorted(RULES):
        if RULES[name].family != family:
            continue
        for example in page(name).bad:
            if example.language != "yaml" or len(example.text) > LARGE:
                continue  # a run.toml, or an example of too many values
            documents = list(yaml.safe_load_all(example.text))
            number = int(name[-3:])
            for index, document in enumerate(documents):
                for changed in mutants(document, number + index):
                    texts.append([*documents[:index], changed, *documents[index + 1 :]])
    assert texts
    lint([read_text(yaml.safe_dump_all(each).encode(), f"{index}.yaml") for index, each in enumerate(texts)])
