"""Requests that go wrong under a staging: no wrong byte is published, a failure is named, a rerun mends it.

A line per batch of 25 cases; case ``n`` of a seed is always the same.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from tests.crash.cases import scratch
from tests.prove.hostile_keys import ENDPOINT, ENVIRONMENT
from tests.prove.record import ROOT, Record
from tests.s3 import S3Server
from tests.staging.faulty import Trial, WrongBytes, cases

BATCH = 25
COLUMNS = ["from", "cases", "faults", "staged", "failed by name", "wrong bytes", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` (at least 500) stagings met at least one fault each."""
    record = Record("staging-faults", seed, Path(os.environ.get("ARGOSY_PROOFS", Path.home() / ".cache/argosy/proofs")))
    deadline, count = time.monotonic() + minutes * 60, max(count, 500)
    done = sum(case["cases"] for case in record.cases())
    with scratch() as folder, S3Server() as server, patch.dict(os.environ, {**ENVIRONMENT, ENDPOINT: server.endpoint}):
        trial = Trial(server, folder, seed)
        while done < count and time.monotonic() < deadline:
            case = _batch(trial, done, seed)
            record.add(case)
            done += BATCH
            print(f"{done} of {count} cases: {case}", flush=True)
    faults = sum(case["faults"] for case in record.cases())
    title = f"{faults} requests that went wrong in {done} stagings"
    table = record.write_table(title, COLUMNS, count=count)
    print(f"written: {table.relative_to(ROOT)}")
    return 0 if all(case["held"] for case in record.cases()) else 1


def _batch(trial: Trial, first: int, seed: int) -> dict[str, object]:
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
