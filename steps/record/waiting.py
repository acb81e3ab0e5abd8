"""How long gangs waited for nodes, and what they held meanwhile, out of the ``gang_waits`` events."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.steps.record.facts import RunRecord, Waiting
from argosy.steps.record.reading import text, whole
from argosy.steps.record.wording import duration
from argosy.steps.runlog import Event

_ENDS = ("restart_began", "gang_deleted", "gang_created")


def waiting_of(events: Sequence[Event], now: float, over: bool = False) -> Waiting | None:
    """None when no gang waited long enough to be told; ``now`` ends what still waits, seconds since 1970.

    ``over``: the run has ended, and no gang waits whatever was told last.
    """
    told = [event for event in events if event.kind == "gang_waits"]
    if not told:
        return None
    queued = held = 0.0
    for event in told:
        ends = (each.time for each in events if each.time >= event.time and each is not event and _ends(each, event))
        seconds = max(0.0, next(ends, now) - event.time)
        if text(event.fields, "phase") == "queued":
            queued += seconds
        elif text(event.fields, "phase") == "placing":
            held += seconds * (whole(event.fields, "placed") or 0)
    reasons = [why for event in told if (why := text(event.fields, "why"))]
    last = told[-1]
    gone = (
        over
        or text(last.fields, "phase") == "placed"
        or any(each.time >= last.time and _is_over(each, last) for each in events if each is not last)
    )
    standing = "" if gone else gang_stands(last)
    return Waiting(queued_seconds=queued, held_node_seconds=held, why=reasons[-1] if reasons else "", now=standing)


def gang_stands(event: Event) -> str:
    """``gang 1 is queued, 0 of 2 pods have a node``."""
    gang, placed, nnodes = (whole(event.fields, name) or 0 for name in ("attempt", "placed", "nnodes"))
    return f"gang {gang} is {text(event.fields, 'phase')}, {placed} of {nnodes} pods have a node"


def _is_over(event: Event, wait: Event) -> bool:
    """A gang that is given up waits for nothing, though it holds its nodes until it is deleted."""
    return event.kind == "restart_ended" or _ends(event, wait)


def _ends(event: Event, wait: Event) -> bool:
    same = text(event.fields, "gang") == text(wait.fields, "gang")
    return event.kind in _ENDS or (event.kind == "gang_waits" and same)


def waiting_sentence(record: RunRecord) -> str:
    """``3 min in the queue; 1.2 node-minutes held by gangs that were not whole (0/3 nodes ...)``; empty: no wait.

    One that lasts begins with the gang that waits.
    """
    told = record.waiting
    if told is None:
        return ""
    parts = [told.now] if told.now else []
    parts += [f"{duration(told.queued_seconds)} in the queue"] if told.queued_seconds else []
    if told.held_node_seconds:
        parts.append(f"{told.held_node_seconds / 60:.1f} node-minutes held by gangs that were not whole")
    why = f" ({told.why})" if told.why else ""
    return "; ".join(parts) + why if parts else ""
