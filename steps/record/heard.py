"""When a run was last heard of, by whatever its store tells."""

from __future__ import annotations

from argosy.steps.claims import beat_at, last_event
from argosy.steps.store.base import ObjectStore


def last_beat(store: ObjectStore, prefix: str) -> float:
    """The newest sign of life of any workflow of the run, seconds since 1970; 0.0 for none."""
    return max((beat_at(store, info.key) for info in store.list(f"{prefix}/alive".lstrip("/"))), default=0.0)


def last_heard(store: ObjectStore, prefix: str) -> float:
    """The same, or its newest event: between two steps nobody's heart beats."""
    return max(last_beat(store, prefix), last_event(store, prefix))
