"""New events of a run, without reading the old ones again."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.runlog import Event, read_batches, told_in
from argosy.steps.store.base import ObjectStore


class EventFollower:
    """Batches of the event log are immutable, so each object is read once."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        """``prefix`` is the run's key prefix."""
        self._store, self._base = store, f"{prefix}/events"
        self._seen: set[str] = set()
        self._latest: dict[str, float] = {}

    def new(self) -> list[Event]:
        """Events of the batches that were written since the last call, by time."""
        keys = [info.key for info in self._store.list(self._base) if info.key not in self._seen]
        return sorted(told_in(self._read(keys), self._latest), key=lambda event: event.time)

    def _read(self, keys: list[str]) -> Iterator[tuple[str, bytes]]:
        for key, data in read_batches(self._store, keys):
            self._seen.add(key)
            yield key, data
