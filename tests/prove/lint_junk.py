"""Every value of every rule's examples replaced by every piece of junk: no rule falls over anything that is YAML.

The test beside the rules takes a third of the values with one piece of junk each. ``--count`` says nothing here.
"""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Iterator
from typing import Any

import yaml

from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_junk import JUNK, LARGE, places
from tests.prove.record import Record

COLUMNS = ["rule", "manifests", "seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Go through the rules that are not recorded yet, until ``minutes`` are over; 0 when all so far held."""
    del count
    load()
    record = Record("lint-junk", seed)
    done = {case["rule"] for case in record.cases()}
    record.go_on([name for name in sorted(RULES) if name not in done], survives, minutes)
    return record.told("Every value of every rule's examples replaced by junk", COLUMNS, count=0)


def survives(rule: str) -> dict[str, Any]:
    """Lint all mutants of a rule's examples, with all rules."""
    began = time.monotonic()
    files = [read_text(text.encode(), f"{index}.yaml") for index, text in enumerate(mutants(rule))]
    why = ""
    try:
        lint(files)
    except Exception:
        why = traceback.format_exc().strip().splitlines()[-1]
    seconds = round(time.monotonic() - began, 1)
    return {"rule": rule, "manifests": len(files), "seconds": seconds, "held": not why, "why": why}


def mutants(rule: str) -> Iterator[str]:
    """The examples with one value replaced, once per value and piece of junk."""
    for example in [*page(rule).bad, *page(rule).good]:
        if example.language != "yaml" or len(example.text) > LARGE:
            continue
        try:
            documents = list(yaml.safe_load_all(example.text))
        except yaml.YAMLError:
            continue  # what cannot be read is that example's point
        for index, document in enumerate(documents):
            for path in places(document, ()):
                for junk in JUNK:
                    yield yaml.safe_dump_all([*documents[:index], _with(document, path, junk), *documents[index + 1 :]])


def _with(document: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    changed = copy.deepcopy(document)
    held = changed
    for key in path[:-1]:
        held = held[key]
    held[path[-1]] = junk
    return changed
