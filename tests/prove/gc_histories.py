"""Random histories of saves, crashes, zombies, pins, damage and prunes on a store in a dictionary, 250 per line.

After each act: nothing live or pinned misses a byte, nothing went that had fewer than ``keep`` newer whole ones, no
fenced gang deleted anything newer, and after a whole prune nothing dead is left.
"""

from __future__ import annotations

import time

from tests.models.random_histories import play
from tests.models.stores import DictStore
from tests.prove.record import Record

COLUMNS = ["acts", "commits", "prunes", "claims", "broken", "seconds", "held"]
BATCH = 250


def prove(*, count: int, seed: int, minutes: float) -> int:
    """``count`` batches (40 are 10,000 histories); replay: ``tests.models.test_histories.again("SEED-NUMBER")``."""
    record = Record("gc-histories", seed)
    record.go_on(record.left(count), lambda number: batch(number, seed), minutes)
    return record.told("Random histories of pruning", COLUMNS, by=())


def batch(number: int, seed: int) -> dict[str, object]:
    """One line; what breaks is printed with its seed."""
    began, acts, kinds, broken = time.monotonic(), 0, {"commit": 0, "prune": 0, "claim": 0}, []
    for history in range(number * BATCH, (number + 1) * BATCH):
        try:
            world = play(DictStore(), f"{seed}-{history}", acts=20)
        except Exception as error:
            broken.append(f"{seed}-{history}: {error!r}")
            print(broken[-1], flush=True)
            continue
        acts += world.acts
        for entry in world.model.log:
            kinds[entry.kind] += 1
    return {
        "histories": f"{number * BATCH} to {(number + 1) * BATCH - 1}",
        "acts": acts,
        "commits": kinds["commit"],
        "prunes": kinds["prune"],
        "claims": kinds["claim"],
        "broken": len(broken),
        "seconds": round(time.monotonic() - began, 1),
        "held": not broken,
    }
