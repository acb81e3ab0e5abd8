"""Real ranks and their writers struck in 13 ways, in 8 phases, on each of 3 ranks: no acknowledged commit is lost.

One line is one kind in one phase (a row: in all of them): a chain of gangs, each resumed from what the one before
left, struck on rank 0, the middle one and the last one, and one that trains to an end. ``COUNT`` is the number of
faults. One chain alone: ``python -m tests.processes KIND PHASE --seed SEED``.
"""

from __future__ import annotations

import queue
import statistics
import time
from typing import Any

from tests.processes.chain import Chain
from tests.processes.faults import KINDS
from tests.processes.lane import WORLD, Lane, lanes
from tests.processes.phases import PHASES
from tests.prove.record import Record

LANES = 3
CHAINS = [(kind, phase) for phase in PHASES for kind in KINDS]
COUNT = WORLD * len(CHAINS)
COLUMNS = [
    "fault", "faults", "phase missed, again", "resumed", "acknowledged", "lost", "steps lost at most",
    "others ended with", "sent before, delivered after the next claim", "seconds", "held",
]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` faults are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("process-faults", seed)
    done = {(case["fault"], case["phase"]) for case in record.cases()}
    todo = [chain for chain in CHAINS[: -(-count // WORLD)] if chain not in done]
    free: queue.SimpleQueue[Lane] = queue.SimpleQueue()

    def judged(chain: tuple[str, str]) -> dict[str, Any]:
        lane = free.get()
        try:
            return one(lane, *chain, str(seed))
        finally:
            free.put(lane)

    if todo:
        with lanes(LANES) as made:
            for lane in made:
                free.put(lane)
            record.go_on(todo, judged, minutes - 2 / 3, LANES)
    return _told(record, count)


def one(lane: Lane, kind: str, phase: str, seed: str) -> dict[str, Any]:
    """One chain, as a line of the record."""
    began = time.monotonic()
    found = Chain(lane, f"{seed}/{kind}/{phase}").run([(kind, phase, rank) for rank in range(WORLD)])
    return {
        "fault": kind,
        "phase": phase,
        "faults": found.cases,
        "phase missed, again": found.missed,
        "resumed": found.resumed,
        "acknowledged": found.acknowledged,
        "lost": found.lost,
        "steps lost at most": found.lost_steps,
        "others ended with": ", ".join(f"{code} ({number})" for code, number in sorted(found.endings.items())),
        "sent before, delivered after the next claim": found.late,
        "hangs": KINDS[kind].hangs,
        "knew": found.knew,
        "seconds": round(time.monotonic() - began, 1),
        "wrong": found.wrong[:3],
        "held": found.cases == WORLD and not found.wrong,
    }


def _told(record: Record, count: int) -> int:
    cases = record.cases()
    crashes = [seconds for case in cases if not case["hangs"] for seconds in case["knew"]]
    note = (
        f"{sum(case['faults'] for case in cases)} faults, {sum(case['lost'] for case in cases)} acknowledged commits "
        f"lost. After a crash every other rank knew after {statistics.median(crashes):.2f} s (median of "
        f"{len(crashes)}; the last one after {max(crashes):.2f} s); who hangs is ended by a timeout. A save is every 5 "
        "steps; it goes on while training does, so that at most one interval is lost and what was trained meanwhile. "
        "Codes: 1 is an exception from torch in the script's own collective, 75 and 70 were told by argosy."
    )
    print(note)
    return record.told("Real processes struck at named moments", COLUMNS, count=count, note=note, by=["fault"])
