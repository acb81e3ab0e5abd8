"""The list of guards cannot rot: each text to remove stands in its file, once. See ``make prove SUITE=mutants``."""

from __future__ import annotations

import pytest

from tests.models.guards import GUARDS, Guard
from tests.prove.mutants import absent


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what)
def test_the_guard_is_there(guard: Guard) -> None:
    assert not absent(guard)
    assert guard.old != guard.new


def test_there_are_enough_and_each_has_its_name() -> None:
    assert len({guard.what for guard in GUARDS}) == len(GUARDS) >= 40
