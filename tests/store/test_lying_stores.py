"""The probe names each lying S3, over HTTP, within ten seconds, and nothing on honest ones."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from argosy.steps.store import ObjectStore
from argosy.steps.store.cloud import CloudStore
from argosy.steps.store.probe import probe
from tests.s3 import Bucket, S3Server
from tests.s3.lying import BEYOND, FOUND_BY, NUISANCES


@pytest.fixture(scope="module")
def liars() -> Iterator[S3Server]:
    with S3Server({liar.__name__.lower(): liar() for liar in (*FOUND_BY, *BEYOND)}) as server:
        yield server


@pytest.mark.parametrize("liar", FOUND_BY, ids=lambda liar: liar.__name__)
def test_each_liar_is_named(
    liar: type[Bucket], liars: S3Server, s3_environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", liars.endpoint)
    began = time.monotonic()
    findings = probe(CloudStore(f"s3://{liar.__name__.lower()}", retry_seconds=2), "run")
    assert FOUND_BY[liar] in [finding.rule for finding in findings]
    assert any(finding.refuses for finding in findings) == (liar not in NUISANCES)
    assert time.monotonic() - began < 10


def test_honest_ones_are_not_accused(store: ObjectStore) -> None:
    assert probe(store, uuid.uuid4().hex) == []
