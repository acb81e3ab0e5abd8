"""Every order of two and three gangs, of pruners, pinners, readers and a newer gang; wrong protocols beside them.

One line per exploration. ``--count`` is how many of them (all by default), ``--seed`` says nothing here.
"""

from __future__ import annotations

import time

from tests.models.cases import CASES, Case
from tests.prove.record import Record

COLUMNS = ["who, and what may be lost", "schedules", "states", "requests", "broken", "seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Explore what is not explored yet, until ``minutes`` are over; 0 when all that were explored held."""
    record = Record("schedules", seed)
    done = {case[COLUMNS[0]] for case in record.cases()}
    record.go_on([case for case in CASES if case.what not in done], explored, minutes)
    return record.told("Every order of gangs on one commit log, counted over states", COLUMNS)


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
