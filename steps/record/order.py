"""The events of a run in order, and words that a starved node read after the save that they belong to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from argosy.steps.record.reading import text, whole
from argosy.steps.runlog import Event

LATE_SECONDS = 3.0


def in_order(events: Sequence[Event]) -> list[Event]:
    """By time. A save whose files say step 20 was made when the script had told 20, if it told that
    number about then, though only 18 had been read.
    """
    # The fields too: events of one moment must not change places with the order in which they were read.
    ordered = sorted(events, key=lambda event: (event.time, event.writer, event.kind, str(event.fields)))
    told: dict[int, list[float]] = {}
    for event in ordered:
        if event.kind == "step" and (step := whole(event.fields, "step")) is not None:
            told.setdefault(step, []).append(event.time)
    return [_corrected(event, told) if event.kind == "checkpoint_committed" else event for event in ordered]


def _corrected(save: Event, told: dict[int, list[float]]) -> Event:
    step, read = whole(save.fields, "step"), whole(save.fields, "told")
    if step is None or read is None or read >= step or save.fields.get("relative"):
        return save
    if text(save.fields, "step_from") not in ("name", "file"):
        return save
    times = told.get(step, [])
    after = bisect_left(times, save.time - LATE_SECONDS)
    if after == len(times) or times[after] > save.time + LATE_SECONDS:
        return save
    return replace(save, fields={**save.fields, "told": step})
