"""A pause between steps that is longer than those before it explain."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.steps.record.reading import number, whole
from argosy.steps.record.wording import duration
from argosy.steps.runlog import Event

_OVER = (
    "step", "stalled", "checkpoint_committed", "gang_grows", "restart_began", "restart_ended", "train_ended",
)  # fmt: skip


def stall_sentence(event: Event) -> str:
    """``no step for 3 min after step 1200; the longest pause before was 8.1 s``."""
    waited, longest = number(event.fields, "seconds") or 0.0, number(event.fields, "longest") or 0.0
    after = whole(event.fields, "step") or 0
    return f"no step for {duration(waited)} after step {after}; the longest pause before was {duration(longest)}"


def stalled_now(events: Sequence[Event]) -> str:
    """The sentence while a stall lasts, else ""; ``events`` sorted by time."""
    latest = next((event for event in reversed(events) if event.kind in _OVER), None)
    return stall_sentence(latest) if latest is not None and latest.kind == "stalled" else ""
