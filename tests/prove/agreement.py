"""A sample of the agreement cases, asked a real Argo again: ``answers.json`` is what it answers, and goes on to be.

A line is a batch of cases; its cases and their order come from the seed.
"""

from __future__ import annotations

import random
import time
from typing import Any

from tests.agreement import answer
from tests.agreement.corpus import every
from tests.agreement.record import ARGO, Questions, ask, load
from tests.cluster.cluster import Cluster
from tests.prove.record import Record

COUNT = 4
BATCH = 10
PATIENCE = 60.0
COLUMNS = ["cases", "differ", "seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next batches that are not recorded yet; 0 when every answer was the recorded one."""
    record, cluster = Record("agreement", seed), Cluster()
    names = sorted(every())
    random.Random(seed).shuffle(names)
    with cluster.lent():
        questions = Questions(cluster)
        batches = range(-(-len(names) // BATCH))
        left = [each for each in record.left(count) if each in batches]
        record.go_on(
            left, lambda number: _batch(questions, number, names[number * BATCH : (number + 1) * BATCH]), minutes
        )
    return record.told(f"The recorded answers, asked again of Argo {ARGO}", COLUMNS, by=())


def _batch(questions: Questions, number: int, names: list[str]) -> dict[str, Any]:
    known, began, differ = load(), time.monotonic(), []
    for name, heard in ask(questions, [every()[name] for name in names], at_once=BATCH, patience=PATIENCE):
        if found := _differences(known[name], heard):
            differ.append(name)
            print(f"{name}:", *found, sep="\n    ", flush=True)
    return {
        "batch": number + 1,
        "cases": len(names),
        "differ": " ".join(differ),
        "seconds": round(time.monotonic() - began),
        "held": not differ,
    }


def _differences(before: answer.Answer, now: answer.Answer) -> list[str]:
    special = ("refused", "stuck")
    if before["phase"] in special or now["phase"] in special:
        return [] if before["phase"] == now["phase"] else [f"phase: {before['phase']!r}, now {now['phase']!r}"]
    return answer.differences(before, now)
