"""Each lying S3 and each honest one asked by the probe, ``count`` times each: named every time, in under 10 s."""

from __future__ import annotations

import time
from typing import Any

from argosy.steps.store.cloud import CloudStore
from argosy.steps.store.probe import probe
from tests.crash.cases import serving
from tests.prove.record import Record
from tests.s3 import Bucket
from tests.s3.lying import BEYOND, FOUND_BY, NUISANCES

COLUMNS = ["store", "asked", "named", "by", "refused", "slowest s", "held"]
LIMIT_SECONDS = 10.0


def prove(*, count: int, seed: int, minutes: float) -> int:
    """One line per store; ``seed`` changes nothing."""
    record = Record("lying-stores", seed)
    done = {case["store"] for case in record.cases()}
    todo = [liar for liar in (Bucket, *FOUND_BY, *BEYOND) if liar.__name__ not in done]
    record.go_on(todo, lambda liar: asked(liar, count), minutes)
    liars = sum(case["store"] in {liar.__name__ for liar in FOUND_BY} and case["held"] for case in record.cases())
    return record.told(f"{liars} lying stores named by the probe, the honest one never", COLUMNS, count=count)


def asked(liar: type[Bucket], count: int) -> dict[str, Any]:
    """Probe a fresh store of the kind ``count`` times."""
    named, refused, slowest, rules = 0, 0, 0.0, set()
    with serving() as server:
        for _ in range(count):
            server.buckets["crash"] = liar()
            began = time.monotonic()
            findings = probe(CloudStore("s3://crash", retry_seconds=2), "run")
            slowest = max(slowest, time.monotonic() - began)
            rules |= {finding.rule for finding in findings}
            named += FOUND_BY.get(liar, "") in [finding.rule for finding in findings]
            refused += any(finding.refuses for finding in findings)
    expected = (count, 0 if liar in NUISANCES else count)
    held = (named, refused) == expected and slowest < LIMIT_SECONDS if liar in FOUND_BY else liar in BEYOND or not rules
    by = ", ".join(sorted(rules)) or BEYOND.get(liar, "honest")
    return {
        "store": liar.__name__, "asked": count, "named": named, "by": by, "refused": refused,
        "slowest s": round(slowest, 2), "held": held,
    }  # fmt: skip
