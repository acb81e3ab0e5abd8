"""A list in the store that only grows: entry ``seq + 1`` is created if absent, so of two writers one wins.

Entries are tiny JSON objects and are never changed or deleted.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import seq_name, seq_of
from argosy.steps.store.base import ObjectStore
from argosy.steps.store.creation import create_ours

_FEW, _READERS = 4, 16
"""More entries than a few are read at once: one by one, those of a month of restarts would take minutes."""


@dataclass(frozen=True)
class LogEntry:
    """One entry: its number, counted from 1, and what was written."""

    seq: int
    record: dict[str, Any]


Record = TypeVar("Record")


def read_as(kind: type[Record], record: dict[str, Any]) -> Record:
    """A record as its dataclass; keys that a newer version added are ignored.

    Raises:
        StepError: ``data_corrupt`` when a required field is missing.
    """
    names = {spec.name for spec in fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**{name: value for name, value in record.items() if name in names})
    except TypeError as error:
        raise StepError(Cause.DATA_CORRUPT, f"a record of {kind.__name__.lower()} is not whole: {error}") from error


class AppendLog:
    """The entries below one prefix of a store."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def entries(self) -> list[LogEntry]:
        """All entries, oldest first.

        Raises:
            StepError: ``data_corrupt`` when an entry is not a JSON object.
        """
        keys = [info.key for info in self._store.list(self._prefix) if info.key.endswith(".json")]
        if len(keys) <= _FEW:
            return [self._read(key) for key in keys]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self._read, keys))

    def _read(self, key: str) -> LogEntry:
        try:
            record = json.loads(self._store.get(key))
            if isinstance(record, dict):
                return LogEntry(seq_of(key), record)
        except ValueError as error:
            raise StepError(Cause.DATA_CORRUPT, f"{self._store.uri}/{key} is not JSON: {error}") from error
        raise StepError(Cause.DATA_CORRUPT, f"{self._store.uri}/{key} is not a JSON object")

    def append(self, seq: int, record: dict[str, Any]) -> bool:
        """Create entry ``seq``; False when somebody else already did. No two writers may have an equal ``record``."""
        data = json.dumps(record, indent=1).encode() + b"\n"
        return create_ours(self._store, f"{self._prefix}/{seq_name(seq)}", data)
