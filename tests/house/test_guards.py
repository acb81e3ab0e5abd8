"""Each guard of ``make prove SUITE=mutants`` still stands where its edit looks for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.models.guards import GUARDS

ROOT = Path(__file__).parents[2]


def test_each_guard_can_be_taken_away() -> None:
    found = {guard.what: (ROOT / guard.file).read_text().count(guard.old) for guard in GUARDS}
    assert {what: count for what, count in found.items() if count != 1} == {}
    assert [guard.what for guard in GUARDS if guard.old == guard.new] == []


def test_no_two_guards_have_one_name() -> None:
    assert [what for what, count in Counter(guard.what for guard in GUARDS).items() if count > 1] == []


def test_their_tests_are_there() -> None:
    named = {word.split("::")[0] for guard in GUARDS for word in guard.tests.split() if word.startswith("tests/")}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
