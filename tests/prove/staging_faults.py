"""Requests that go wrong under a staging: no wrong byte is published, a failure is named, a rerun mends it.

A line per batch of 25 cases; case ``n`` of a seed is always the same.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice
from typing import Any
from unittest.mock import patch

from tests.crash.cases import scratch
from tests.prove.hostile_keys import ENDPOINT, ENVIRONMENT
from tests.prove.record import Record
from tests.s3 import S3Server
from tests.staging.faulty import Trial, WrongBytes, cases

BATCH = 25
COLUMNS = ["cases", "faults", "staged", "failed by name", "wrong bytes", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` (at least 500) stagings went through a faulty store."""
    record, count = Record("staging-faults", seed), max(count, 500)
    done = sum(case["cases"] for case in record.cases())
    with scratch() as folder, S3Server() as server, patch.dict(os.environ, {**ENVIRONMENT, ENDPOINT: server.endpoint}):
        trial = Trial(server, folder, seed)
        record.go_on(range(done, count, BATCH), lambda first: _batch(trial, first, seed), minutes)
    faults, done = (sum(case[name] for case in record.cases()) for name in ("faults", "cases"))
    return record.told(f"{faults} requests that went wrong in {done} stagings", COLUMNS, count=count, by=())


def _batch(trial: Trial, first: int, seed: int) -> dict[str, Any]:
    told: Counter[str] = Counter()
    for case in islice(cases(seed), first, first + BATCH):
        try:
            found = trial.judge(case)
        except WrongBytes as error:
            told["wrong bytes"] += 1
            print(error, flush=True)
            continue
        told["faults"] += found["faults"]
        told["staged" if found["staged"] else "failed by name"] += 1
    fields = {name: told[name] for name in COLUMNS}
    return {**fields, "from": first, "cases": BATCH, "held": not told["wrong bytes"]}
