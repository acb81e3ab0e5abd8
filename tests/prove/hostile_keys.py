"""Keys that mean harm, through a real listing into a real folder: none leaves it, each that is refused is named.

The table has their sums; the same seed gives the same keys (Hypothesis, without its database).
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.crash.cases import scratch
from tests.prove.record import Record
from tests.s3 import S3Server
from tests.staging.hostile import Escaped, datasets, judge, race

BATCH = 100
LINKS = 20
"""Folders that turn into symbolic links under the staging, per batch."""
COLUMNS = ["keys", "datasets", "staged", "refused", "links", "escaped", "held"]
ENDPOINT = "AWS_ENDPOINT_URL_S3"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` (at least 10,000) keys are judged."""
    record, count = Record("hostile-keys", seed), max(count, 10_000)

    def examined() -> int:
        return sum(case["keys"] for case in record.cases())

    todo = takewhile(lambda _: examined() < count, itertools.count(len(record.cases())))
    with scratch() as folder, S3Server() as server, patch.dict(os.environ, {**ENVIRONMENT, ENDPOINT: server.endpoint}):
        record.go_on(todo, lambda number: _batch(server, folder, number, seed), minutes)
    return record.told(f"{examined()} hostile keys, none of which left the folder", COLUMNS, count=count, by=())


def _batch(server: S3Server, folder: Path, number: int, base: int) -> dict[str, Any]:
    told: Counter[str] = Counter()

    @seed(base * 100_000 + number)
    @settings(
        max_examples=BATCH, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(datasets)
    def examine(dataset: list[str]) -> None:
        told["keys"] += len(dataset)
        told["datasets"] += 1
        try:
            told[judge(server, dataset, folder)] += 1
        except Escaped as error:
            told["escaped"] += 1
            print(error, flush=True)

    examine()
    try:
        told["links"] = race(server, folder, links=LINKS)
    except Escaped as error:
        told["escaped"] += 1
        print(error, flush=True)
    return {**{name: told[name] for name in COLUMNS}, "batch": number, "held": not told["escaped"]}
