"""Every crash point: each operation or request of each workload, with each kind of fault, judged by one oracle.

A line per batch (workload, way, kind), a row per workload and way. A case again: the message of a violation names
batch and point; ``ARGOSY_ONLY="saves, http, cut"`` runs only the batches whose name contains it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from tests.crash.cases import Violation, batches, run, serving
from tests.prove.record import Record

COLUMNS = ["workload", "cases", "violations", "CPU seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """All batches that are not recorded yet, on two cores; ``count`` and ``seed`` change nothing: all is exhaustive."""
    record = Record("crash-points", seed)
    deadline = time.monotonic() + minutes * 60
    done, only = {case["batch"] for case in record.cases()}, os.environ.get("ARGOSY_ONLY", "")
    todo = [number for number, batch in enumerate(batches()) if batch.name not in done and only in batch.name]
    # A fresh interpreter each: the store's client has threads, which do not survive a fork.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(one, number, deadline) for number in todo]):
            if (case := future.result()) is not None:
                record.add(case)
                print(f"{case['batch']}: {case['cases']} cases, {case['violations'] or 'held'}", flush=True)
    cases = record.cases()
    total, seconds = sum(case["cases"] for case in cases), sum(case["CPU seconds"] for case in cases)
    title = f"{total} crash points, {sum(not case['held'] for case in cases)} violations, {seconds:.0f} s of CPU"
    print(title)
    return record.told(title, COLUMNS, count=0, by=["workload"])


def one(number: int, deadline: float) -> dict[str, Any] | None:
    """The line of one batch; None when the time was over before it began."""
    if time.monotonic() > deadline:
        return None
    batch, began = batches()[number], time.process_time()
    cases, violation = 0, ""
    try:
        with serving() as server:
            cases = run(batch, server)
    except Violation as error:
        violation = str(error)
    seconds = round(time.process_time() - began, 2)
    return {
        "batch": batch.name, "workload": batch.name.rpartition(", ")[0], "cases": cases, "violations": violation,
        "CPU seconds": seconds, "held": not violation,
    }  # fmt: skip
