"""How many objects the log of a long training has, on real stores."""

from __future__ import annotations

import time

import pytest

from argosy.steps import runlog
from argosy.steps.runlog import RunLog, read_events
from argosy.steps.store import ObjectStore

STEP = {"attempt": 1, "restart": 0, "rank": 0}


def test_steps_alone_wait_where_each_look_is_a_request(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FLUSH_SECONDS": 0.01, "SLOWEST_SECONDS": 3600.0, "_SHARE": 1e9}.items():
        monkeypatch.setattr(runlog, name, value)
    with RunLog(store, "r", "train") as log:
        for step in range(1, 21):
            log.append("step", **STEP, step=step)
            time.sleep(0.02)  # the flusher has its chance between any two
        log.append("stalled", attempt=1, restart=0, step=20)
        until = time.monotonic() + 60
        while not any(event.kind == "stalled" for event in read_events(store, "r")):
            assert time.monotonic() < until, "what is no step is written at once"
            time.sleep(0.02)
        log.append("step", **STEP, step=21)
        objects = len(list(store.list("r/events")))
    assert (objects == 1) == (not store.uri.startswith("file:")), objects
    assert [event.fields["step"] for event in read_events(store, "r")] == [*range(1, 21), 20, 21]
