"""Lines that the search of a whole file passed over are shown to no rule again, and no verdict is another for it."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest

from argosy.workflows.diagnosis import excerpt as reading
from argosy.workflows.diagnosis.excerpt import HEAD_LINES, MAX_LINE_BYTES, TAIL_LINES, excerpt
from argosy.workflows.diagnosis.verdict import diagnose
from tests.verdict.public import LOGS

_AFTERWARDS = "all is well here\n" * 60
"""Of a short file the last lines are read whatever they say."""


def test_what_the_search_passes_over_says_nothing() -> None:
    for log in LOGS[::8]:
        lines = excerpt(BytesIO((log["say"] + "\n" + _AFTERWARDS).encode()), "a")
        again = [replace(line, silent=False) for line in lines]
        assert diagnose([lines]).record() == diagnose([again]).record(), log["source"]


def test_lines_between_two_matches_are_passed_over() -> None:
    said = "step 1 loss 2.5\nstep 2 loss 2.4\nRuntimeError: CUDA error: an illegal memory access\nstep 3 loss 2.3\n"
    lines = excerpt(BytesIO((said + _AFTERWARDS).encode()), "a")
    assert [line.silent for line in lines[:4]] == [True, True, False, True]


def test_long_lines_are_kept_cut() -> None:
    line = "RuntimeError: CUDA error: an illegal memory access " + "x" * 2_000_000 + "\n"
    lines = excerpt(BytesIO((line * 40).encode()), "a")
    assert {len(each.text) for each in lines} == {MAX_LINE_BYTES}
    assert [each.number for each in lines] == list(range(1, 41))


def test_empty_lines_take_no_place_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 10_000)
    said = "RuntimeError: CUDA error: an illegal memory access\n\n" * 5000
    lines = excerpt(BytesIO(said.encode()), "a")
    assert len(lines) == HEAD_LINES + TAIL_LINES
    assert lines[-1].number == 9999


_BAR = b"".join(b"\r%d%%|#| %d/999" % (at, at) for at in range(999))


@pytest.mark.parametrize("before", [_BAR + b"\r", b"\0" * 50_000])
def test_what_stands_behind_a_long_progress_bar_or_a_hole_is_read(before: bytes) -> None:
    said = "RuntimeError: CUDA error: an illegal memory access"
    (line,) = excerpt(BytesIO(before + said.encode() + b"\n"), "a")
    assert (line.number, line.text) == (1, said)
