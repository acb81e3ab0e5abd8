"""Every order of gangs, pruners, pinners and readers: nothing forks, nothing acknowledged is lost. See explorer.py."""

from __future__ import annotations

import pytest

from tests.models.cases import CASES, Case


@pytest.mark.parametrize("case", [case for case in CASES if case.quick], ids=lambda case: case.what)
def test_every_order(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    found = case.make().explore()
    with capsys.disabled():
        print(f"[{found.schedules:,} schedules, {found.states:,} states, {found.broken:,} broken]", end=" ")
    assert found.schedules >= 20
    if case.schedules:
        assert found.schedules == case.schedules
    if case.breaks:
        assert found.broken * 20 > found.schedules, "the judge does not see this wrong protocol"
    else:
        assert not found.broken, found.why
