"""The contest of the warm gang misses its bars when the cache did not serve, or when nothing could have been seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.staging.warm_gang import LOCAL, WARM, Begin, judged

FILLED = Begin(0.3, 0.5, 2.7, 7.2, 7.5, fetched=11_200_000, reads=8, cpu=11.0)
HELD = Begin(0.3, 0.4, 2.7, 7.1, 7.5, fetched=0, reads=0, cpu=10.5)
PLAIN = Begin(0.3, 0.0, 2.7, 7.0, 7.5, fetched=0, reads=0, cpu=10.0)


@pytest.mark.parametrize(
    ("filled", "warm", "held"),
    [
        (FILLED, HELD, [True, True, True]),
        (FILLED, replace(HELD, trained=8.1), [False, True, True]),
        (FILLED, replace(HELD, fetched=1), [True, False, True]),
        (FILLED, replace(HELD, reads=1), [True, False, True]),
        (replace(FILLED, fetched=0), HELD, [True, True, False]),
        (replace(FILLED, reads=0), HELD, [True, True, False]),
    ],
    ids=["met", "late", "fetched", "asked", "never filled", "not seen"],
)
def test_each_bar_is_missed_by_what_it_is_for(filled: Begin, warm: Begin, held: list[bool]) -> None:
    outcome = judged(filled, {WARM: [HELD, warm, warm], LOCAL: [PLAIN, PLAIN, PLAIN]})
    assert [bar for _, bar in outcome.bars] == held


def test_a_round_is_compared_with_its_own_round() -> None:
    slow = replace(PLAIN, trained=19.0)  # a slow minute of the machine hits both
    pairs = {WARM: [HELD, replace(HELD, trained=19.1), HELD], LOCAL: [PLAIN, slow, PLAIN]}
    assert "begins +0.10 s later" in judged(FILLED, pairs).bars[0][0]
