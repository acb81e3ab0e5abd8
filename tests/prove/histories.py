"""Hypothesis' state machine with many more steps, on a dictionary, on obstore in memory and on a folder in memory."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from tests.models.test_histories import Histories, OnObstore, on_folder, run
from tests.prove.record import Record

COLUMNS = ["store", "histories", "acts", "seconds", "held"]
STEPS = 40


def prove(*, count: int, seed: int, minutes: float) -> int:
    """``count`` batches of 60 histories of up to 40 acts, each batch with its own seed."""
    record = Record("histories", seed)
    record.go_on(record.left(count), lambda number: batch(number, seed), minutes)
    return record.told("Random histories against a small model", COLUMNS, by=["store"])


def batch(number: int, seed: int) -> dict[str, object]:
    """One batch; a failure prints the shortest history that shows it."""
    began, acts = time.monotonic(), [0, 0]
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="argosy-prove-", dir=shm) as scratch:
        name, machine = [
            ("dictionary", Histories), ("obstore in memory", OnObstore), ("folder", on_folder(Path(scratch) / "store"))
        ][number % 3]  # fmt: skip

        class Counted(machine):  # type: ignore[misc, valid-type]
            def teardown(self) -> None:
                acts[0] += 1
                acts[1] += self.world.acts

        run(Counted, examples=60, steps=STEPS, seed=seed + number)
    return {
        "batch": number,
        "store": name,
        "histories": acts[0],
        "acts": acts[1],
        "seconds": round(time.monotonic() - began, 1),
        "held": True,
    }
