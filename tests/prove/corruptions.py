"""Random damage to every kind of object of a run: all of it found, and what is whole restored.

A line per batch of 100; case ``n`` of seed ``s`` again: ``SEED=s COUNT=n+1``.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from tests.crash.cases import scratch
from tests.crash.corruptions import KINDS, Corruption, Sweep, Undetected
from tests.prove.record import Record

BATCH = 100
COLUMNS = ["cases", *KINDS, "walked back", "refused with 77", "unharmed", "undetected", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Until ``count`` (at least 1,000) cases are recorded."""
    record = Record("corruptions", seed)
    count = max(count, 1000)
    done = sum(case["cases"] for case in record.cases())
    with scratch() as folder:
        sweep = Sweep(folder)
        cases = islice(sweep.corruptions(count, seed), done, None)
        batches = zip(range(done, count, BATCH), iter(lambda: list(islice(cases, BATCH)), []), strict=False)
        record.go_on(batches, lambda batch: judged(sweep, *batch), minutes)
    done = sum(case["cases"] for case in record.cases())
    found = sum(case["cases"] - case["undetected"] for case in record.cases())
    return record.told(f"{found} of {done} corruptions found, or where they harm nothing", COLUMNS, count=count, by=())


def judged(sweep: Sweep, first: int, batch: list[Corruption]) -> dict[str, Any]:
    """The line of a batch; what is not detected is printed with what makes it again."""
    told: Counter[str] = Counter(case.kind for case in batch)
    for case in batch:
        try:
            told[sweep.judge(case)] += 1
        except Undetected as error:
            told["undetected"] += 1
            print(error, flush=True)
    return {
        **{name: told[name] for name in COLUMNS}, "from": first, "cases": len(batch),
        "refused with 77": told["refused"], "held": not told["undetected"],
    }  # fmt: skip
