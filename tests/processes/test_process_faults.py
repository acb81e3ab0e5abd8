"""A sample of `make prove SUITE=process-faults`: real ranks, real writers, faults at observed moments."""

from __future__ import annotations

import os

import pytest

from tests.processes.chain import Chain
from tests.processes.lane import lanes

SAMPLE = [
    ("SIGKILL", "in restore", 1),
    ("SIGKILL", "shards half stored", 2),
    ("writer SIGKILL", "commit pending", 0),
    ("SIGSTOP", "just committed", 1),
]


@pytest.mark.torch
@pytest.mark.variant
def test_no_commit_is_lost() -> None:
    seed = os.environ.get("ARGOSY_TEST_SEED", os.urandom(4).hex())
    print(f"ARGOSY_TEST_SEED={seed}")
    with lanes(1) as (lane,):
        found = Chain(lane, seed).run(SAMPLE)
    assert not found.wrong
    assert found.cases == len(SAMPLE)
    assert found.resumed == len(SAMPLE)  # the gang that was struck in its restore is the one that did not
    assert found.lost == 0
