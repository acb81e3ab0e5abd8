"""Random damage to every kind of object of a run: all of it found, and what is whole restored.

A line per batch of 100; case ``n`` of seed ``s`` again: ``SEED=s COUNT=n+1``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from tests.crash.cases import scratch
from tests.crash.corruptions import KINDS, Sweep, Undetected
from tests.prove.record import ROOT, Record

BATCH = 100
COLUMNS = ["from", "cases", *KINDS, "walked back", "refused with 77", "unharmed", "undetected", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` (at least 1,000) cases are recorded."""
    record = Record("corruptions", seed, Path(os.environ.get("ARGOSY_PROOFS", Path.home() / ".cache/argosy/proofs")))
    deadline, count = time.monotonic() + minutes * 60, max(count, 1000)
    done = sum(case["cases"] for case in record.cases())
    with scratch() as folder:
        sweep = Sweep(folder)
        cases = islice(sweep.corruptions(count, seed), done, None)
        while (batch := list(islice(cases, BATCH))) and time.monotonic() < deadline:
            told: Counter[str] = Counter(case.kind for case in batch)
            for case in batch:
                try:
                    told[sweep.judge(case)] += 1
                except Undetected as error:
                    told["undetected"] += 1
                    print(error, flush=True)
            record.add(
                {**{name: told[name] for name in COLUMNS}, "from": done, "cases": len(batch),
                 "refused with 77": told["refused"], "held": not told["undetected"]}
            )  # fmt: skip
            done += len(batch)
            print(f"{done} of {count}: {dict(told)}", flush=True)
    found = sum(case["cases"] - case["undetected"] for case in record.cases())
    table = record.write_table(f"{found} of {done} corruptions found, or where they harm nothing", COLUMNS, count=count)
    print(f"written: {table.relative_to(ROOT)}")
    return 0 if all(case["held"] for case in record.cases()) else 1
