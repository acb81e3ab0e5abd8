"""The step that a training goes to."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.steps.record.reading import whole
from argosy.steps.runlog import Event


def end_step_of(events: Sequence[Event]) -> int:
    """What the latest start told; one before it may have trained to another end."""
    names = ("attempt", "restart", "end_step")
    told = ([whole(event.fields, name) or 0 for name in names] for event in events if event.kind == "step")
    return max(told, default=[0])[-1]
