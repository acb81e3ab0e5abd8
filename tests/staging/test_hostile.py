"""A few of the datasets and faults of ``make prove SUITE=hostile-keys`` and ``staging-faults``, on every run."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.s3 import S3Server
from tests.staging.faulty import Trial, cases
from tests.staging.hostile import datasets, judge, race


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
        yield server


@pytest.fixture(scope="module", params=["wire", "library"])
def transport(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_S3_TRANSPORT", request.param)
        yield


@pytest.mark.usefixtures("transport")
@settings(max_examples=20, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(dataset=datasets)
def test_no_key_leaves_the_folder_and_each_refused_one_is_named(
    dataset: list[str], server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    judge(server, dataset, tmp_path_factory.getbasetemp() / "hostile")


def test_folders_that_turn_into_links_lead_nowhere(server: S3Server, tmp_path: Path) -> None:
    race(server, tmp_path, links=12)


@pytest.mark.usefixtures("transport")
def test_requests_that_go_wrong_publish_no_wrong_byte(server: S3Server, tmp_path: Path) -> None:
    seed = int(os.environ.get("ARGOSY_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"ARGOSY_TEST_SEED={seed}")
    server.buckets["argosy-tests"].replace({})
    trial = Trial(server, tmp_path, seed)
    for case in islice(cases(seed), 4):
        trial.judge(case)
