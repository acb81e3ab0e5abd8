"""Trainings of two epochs that stream over an unkind network and whose gangs are killed: each sample once, and right.

A line per batch of 10. Case ``n`` of seed ``s`` is that of ``random.Random(f"{s}-{n}")``, whatever ran before.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.prove.record import Record
from tests.s3 import S3Server
from tests.stream.lives import Story

COUNT = 120
BATCH = 10
COLUMNS = ["cases", "lives", "killed", "faults", "steps", "samples", "wrong", "missing", "twice", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` cases are recorded."""
    record = Record("streaming", seed)
    deadline = time.monotonic() + minutes * 60
    for name in [name for name in os.environ if name.startswith(("AWS_", "ARGOSY_R", "ARGOSY_D"))]:
        del os.environ[name]
    os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    while (done := sum(case["cases"] for case in record.cases())) < count and time.monotonic() < deadline:
        told: Counter[str] = Counter()
        for number in range(done, min(done + BATCH, count)):
            told.update(_case(seed, number))
        held = told["wrong"] == told["missing"] == told["twice"] == 0
        record.add({**{name: told[name] for name in COLUMNS}, "from": done, "held": held})
        print(f"{done + told['cases']} of {count}: {dict(told)}", flush=True)
    cases = record.cases()
    lives, samples = (sum(case[name] for case in cases) for name in ("lives", "samples"))
    title = f"{samples} samples streamed through {lives} gangs and a failing network: each once and right"
    return record.told(title, COLUMNS, count=count, by=())


def _case(seed: int, number: int) -> dict[str, int]:
    drawn = random.Random(f"{seed}-{number}").getrandbits(32)
    with S3Server(("data",)) as server, tempfile.TemporaryDirectory() as folder:
        os.environ["AWS_ENDPOINT_URL"] = server.endpoint
        return {"cases": 1, **Story(Path(folder), server, drawn).live()}
