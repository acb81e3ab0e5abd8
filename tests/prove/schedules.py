"""Every order of two and three gangs, of pruners, pinners, readers and a newer gang; wrong protocols beside them.

One line per exploration. ``--count`` is how many of them (all by default), ``--seed`` says nothing here.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.models.cases import CASES, Case
from tests.prove.record import ROOT, Record

COLUMNS = ["who, and what may be lost", "schedules", "states", "requests", "broken", "seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Explore what is not explored yet, until ``minutes`` are over; 0 when all that were explored held."""
    folder = Path(os.environ.get("ARGOSY_PROOFS", Path.home() / ".cache" / "argosy" / "proofs"))
    record = Record("schedules", seed, folder)
    done = {case[COLUMNS[0]] for case in record.cases()}
    deadline = time.monotonic() + minutes * 60
    for case in [case for case in CASES if case.what not in done]:
        row = explored(case)
        record.add(row)
        print(json.dumps(row), flush=True)
        if time.monotonic() > deadline:
            print("run the same command to go on", flush=True)
            break
    table = record.write_table("Every order of gangs on one commit log, counted over states", COLUMNS)
    print(f"written: {table.relative_to(ROOT)}")
    return 0 if all(case["held"] for case in record.cases()) else 1


def explored(case: Case) -> dict[str, object]:
    """One exploration as a row. A wrong protocol holds when it is caught."""
    began = time.monotonic()
    found = case.make().explore()
    held = bool(found.broken) if case.breaks else not found.broken
    return {
        COLUMNS[0]: case.what,
        "schedules": f"{found.schedules:,}",
        "states": f"{found.states:,}",
        "requests": found.requests,
        "broken": f"{found.broken:,} ({found.why})" if found.broken else 0,
        "seconds": round(time.monotonic() - began, 1),
        "held": held and case.schedules in (0, found.schedules),
    }
