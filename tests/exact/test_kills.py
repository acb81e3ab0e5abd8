"""Twenty kills of one run: `make prove SUITE=exact-kills` does a thousand."""

from __future__ import annotations

import json

import pytest

from tests.exact.zygote import Zygote
from tests.prove.exact_kills import one_run

pytestmark = pytest.mark.torch


@pytest.mark.timeout(600)
def test_twenty_kills_leave_the_same_bits(seed: int, zygote: Zygote) -> None:
    case = one_run(0, str(seed), 20, zygote, steps_at_most=7)
    print(json.dumps(case, indent=1))
    assert case["wrong"] == []
    assert case["held"]
    assert case["kills"] == 20
    assert case["S3 faults"] > 5
    assert case["commits"] >= 2  # how far it gets depends on the machine; it has to have gone on from what it saved
