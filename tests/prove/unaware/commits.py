"""The only run's checkpoints, read from disk as they lie there."""

from __future__ import annotations

from pathlib import Path

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.store import open_store
from tests.prove.engine_kill import run_store


def store_of(work: Path) -> CheckpointStore | None:
    """The run's checkpoint store; None before it has one."""
    where = run_store(work)
    return CheckpointStore(open_store(where[0]), where[1]) if where else None


def commits(work: Path) -> int:
    """How often the step of the newest commit moved on, which is what renews the budgets."""
    store = store_of(work)
    return len({commit.step for commit in store.commits()}) if store else 0
