"""The events of a run in order, and words that a starved node read after the save that they belong to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from argosy.steps.record.reading import moment, text, whole
from argosy.steps.runlog import Event

LATE_SECONDS = 3.0
_FIRST = ("snapshot_taken", "admission")
"""What a workflow writes before it trains: long before it has finished, whatever clock that is told by."""


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


def until_another(events: Sequence[Event], state: Mapping[str, Any]) -> Sequence[Event]:
    """Without what a later workflow of the same run id wrote: it has ended otherwise, or did more.

    Where the clock was set back to before the start, when it finished tells nothing of what came after; nor where one
    that trained, and so has written, has written nothing before: then its pods' clocks are ahead of the engine's.
    """
    started, finished = moment(state, "started"), moment(state, "finished")
    if started is not None and finished is not None and finished < started:
        return events
    begun = [event.time for event in events if event.kind in _FIRST]
    other = min((when for when in begun if finished is not None and when > finished), default=None)
    own = events if other is None else [event for event in events if event.time < other]
    own = _until_fenced(own, text(state, "uid"))
    told = state.get("nodes")
    nodes = [node for node in told if isinstance(node, Mapping)] if isinstance(told, list) else []
    trained = any(text(node, "templateName") == "train" and moment(node, "startedAt") is not None for node in nodes)
    return own or (events if trained else own)


def _until_fenced(events: Sequence[Event], uid: str) -> Sequence[Event]:
    """Without what another workflow did that took the run over while this one trained: from its first step on only
    the words of this one's supervisors are its own, of those too that only took a gang of it over. Gangs are numbered
    over all workflows of a run, so whose came later no clock has to tell.
    """
    gangs = [event for event in events if event.kind == "gang_created"]
    ours = [event for event in gangs if f"-{uid[:8].lower()}-a" in text(event.fields, "gang")]
    if not uid or not ours:
        return events
    latest, own = max(event.time for event in ours), {_attempt(event) for event in ours}
    theirs = [event for event in gangs if _attempt(event) > max(own)]
    if not theirs:
        return events
    writers = {event.writer for event in events if _attempt(event) in own} - {event.writer for event in theirs}
    begun = [event.time for event in events if event.kind in _FIRST and event.time > latest]
    taken = min(begun + [event.time for event in theirs])
    return [event for event in events if event.time < taken or event.writer in writers]


def _attempt(event: Event) -> int:
    return whole(event.fields, "attempt") or 0


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
