"""A kill or a failure at operations and requests of every workload: nothing acknowledged is ever lost.

Here a sample, another part of all points with each batch; all of them: ``make prove SUITE=crash-points``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.crash.cases import Batch, batches, run, serving
from tests.crash.workloads import SAVES
from tests.s3 import S3Server

BATCHES, POINTS = 7, 17
"""Every so manyth: primes, so that all workloads and kinds take part, and the points of two batches differ."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving() as served:
        yield served


@pytest.mark.parametrize("kind", ["kill-after", "fail-after"])
def test_at_every_operation_of_a_gang(kind: str, server: S3Server) -> None:
    assert run(Batch(SAVES, "file", kind), server) > 50


def test_at_a_sample_of_all_points(server: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    began, cases = time.monotonic(), 0
    for number, batch in enumerate(batches()[::BATCHES]):
        cases += run(batch, server, lambda point, number=number: point % POINTS == number % POINTS)  # type: ignore[misc]
    with capsys.disabled():
        print(f"[{cases} crash cases in {time.monotonic() - began:.0f} s]", end=" ")
    assert cases > 60
