"""The run's event log: what happened, by whom, when; read by status, explain and the report.

Writers never share an object: each appends numbered batches below ``events/WRITER/``, so that no lock is
needed and a killed writer loses at most the batch it had not flushed.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store.base import UNSERVED, ObjectMissing, ObjectStore

FLUSH_SECONDS = 1.0
SLOWEST_SECONDS = 30.0
"""Steps of a log in an object store wait so long at most, after four hours: 86,400 objects a day would take those who
read them twenty minutes after ten days."""
_SHARE = SLOWEST_SECONDS / (4 * 3600)
SET_BACK_SECONDS = 600.0
"""A writer whose next word is so much older than the one before had its clock set back."""
SILENT_SECONDS = 60.0
"""Between two words that the log cannot be written."""
LOG_UNWRITTEN, KEPT = "argosy: event log not written since ", "; it is kept until it can be"
WRITTEN = "argosy: event log written again"
"""Said on stderr, since the log cannot: who reads a run of this machine looks for them there."""
_STEADY = frozenset(("step", "staging", "streamed"))
"""What is told all the time. Everything else is written within a second."""
READERS = 64
ENGINE_WENT = "its pods ended with the engine"
"""Reason of a ``gang_deleted``: the machine's engine was killed, and nobody had the run go on until this one did."""

KINDS: dict[str, tuple[str, ...]] = {
    "snapshot_taken": ("dataset_digest", "objects", "bytes", "listed", "seconds"),
    "admission": ("decision", "reason", "key", "event", "local"),
    "staging": ("node", "objects", "objects_total", "bytes", "bytes_total", "seconds", "fetched_bytes"),
    "staged": ("node", "bytes", "fetched_bytes", "seconds"),
    "restored": ("node", "rank", "bytes", "fetched_bytes", "seconds"),
    "streamed": ("node", "rank", "bytes", "fetched_bytes", "requests", "refetched", "waited_seconds"),
    "gang_created": ("attempt", "gang", "nnodes", "nproc_per_node", "excluded", "capacity", "preemptions"),
    "gang_waits": ("attempt", "gang", "phase", "placed", "nnodes", "why"),
    "checked_in": ("attempt", "node", "pod", "missing"),
    "restart_began": ("attempt", "restart", "generation", "restored_step", "restored_digest", "skipped"),
    "step": ("attempt", "restart", "rank", "step", "loss", "tokens_per_second", "end_step"),
    "environment": ("attempt", "restart", "node", "variables", "findings"),
    "transport": ("attempt", "restart", "node", "state", "sentence", "remedy", "profile"),
    "preflight": ("summary", "flaws", "seconds", "enforced"),
    "set_aside": ("digest", "reason"),
    "slow_rank": ("attempt", "restart", "rank", "node", "step", "score", "seconds", "others"),
    "skipped": ("first", "last"),
    "standing_by": ("attempt", "node", "pod", "ready"),
    "spare_lost": ("attempt", "node", "pod"),
    "took_over": ("attempt", "restart", "node_rank", "node", "pod", "from_node", "from_pod"),
    "stalled": ("attempt", "restart", "step", "seconds", "longest"),
    "checkpoint_committed": (
        "step",
        "step_from",
        "told",
        "relative",
        "digest",
        "bytes",
        "seconds",
        "generation",
        "final",
        "pod",
    ),
    "rank_ended": ("attempt", "restart", "rank", "node", "pod", "signal", "exit_code"),
    "restart_ended": ("attempt", "restart", "cause", "signal", "exit_code", "rank", "node", "quote", "last_step"),
    "bundle": ("attempt", "restart", "prefix", "files", "bytes"),
    "gang_grows": ("attempt", "restart", "gang", "nnodes", "to", "last_step"),
    "gang_deleted": ("attempt", "gang", "reason", "zombies"),
    "node_excluded": ("node", "cause"),
    "budget": ("cause", "spent", "limit", "refunded"),
    "injected": ("fault", "rank", "node", "step", "asked"),
    "train_ended": ("cause", "exit_code", "checkpoint_digest"),
    "evaluated": ("metric", "value", "checkpoint_digest"),
    "gated": ("decision", "reason", "metric", "value", "floor", "baseline"),
    "promoted": ("pointer", "digest", "previous", "rollback"),
    "finalized": ("status",),
}  # fmt: skip
"""Every kind and its fields; a field that does not apply is left out."""


@dataclass(frozen=True)
class Event:
    """One line of the log; ``time`` in seconds since 1970 by the writer's clock."""

    time: float
    kind: str
    writer: str
    fields: dict[str, Any]


class RunLog:
    """Append events; a thread flushes each second, and steps alone more seldom where the log is long and read by
    request. Use as a context manager, or call :meth:`close`.
    """

    def __init__(
        self, store: ObjectStore, prefix: str, writer: str, listener: Callable[[Event], None] = lambda _: None
    ) -> None:
        """``prefix`` is the run's key prefix; ``writer`` names the step or pod (made unique here); ``listener`` hears
        each event as it is appended.
        """
        self._listener = listener
        self._store = store
        self._base = f"{prefix}/events/{writer}-{int(time.time() * 1000):013d}-{uuid.uuid4().hex[:8]}"
        self._writer = writer
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._lines: list[str] = []
        self._seq = 0
        self._urgent = False
        self._slowest = 0.0 if store.uri.startswith("file:") else SLOWEST_SECONDS
        self._began = self._flushed = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._flush_each_second, name="runlog", daemon=True)
        self._thread.start()

    def append(self, kind: str, **fields: Any) -> None:
        """Add an event.

        Raises:
            KeyError: ``kind`` or a field is not in :data:`KINDS` (a mistake of ours, found by tests).
        """
        unknown = set(fields) - set(KINDS[kind])
        if unknown:
            raise KeyError(f"{kind} has no field {', '.join(sorted(unknown))}")
        now = time.time()
        line = json.dumps({"time": now, "kind": kind, **fields}, separators=(",", ":"), default=str)
        with self._lock:
            self._lines.append(line)
            self._urgent |= kind not in _STEADY
        self._listener(Event(now, kind, self._writer, fields))

    def flush(self) -> None:
        """Write what has gathered; what a store that is away does not take is written when it is back."""
        try:
            self._write()
        except StepError as error:
            if error.cause not in UNSERVED:
                raise

    def _write(self) -> None:
        with self._writing:  # a store that is away takes minutes to refuse, and nobody who appends waits for it
            with self._lock:
                lines, self._urgent = list(self._lines), False
            if not lines:
                return
            # What the store did not take is kept: the next try writes it under the same name, with what came since.
            try:
                self._store.put(f"{self._base}/{self._seq + 1:08d}.jsonl", ("\n".join(lines) + "\n").encode())
            except BaseException:
                self._urgent = True
                raise
            self._seq += 1
            with self._lock:
                del self._lines[: len(lines)]
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Flush and stop the thread."""
        self._closed.set()
        self._thread.join()
        self._write()

    def _flush_each_second(self) -> None:
        silent_until, since = 0.0, 0.0
        while not self._closed.wait(FLUSH_SECONDS):
            now = time.monotonic()
            if not self._urgent and now - self._flushed < min(self._slowest, _SHARE * (now - self._began)):
                continue
            began = time.time()
            try:
                self._write()
                if since:
                    os.write(2, f"{WRITTEN}\n".encode())
                    silent_until, since = 0.0, 0.0
            except Exception as error:  # the log must never end a training
                since = since or began
                if now >= silent_until:
                    silent_until = now + SILENT_SECONDS
                    clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
                    cause = error.cause if isinstance(error, StepError) else Cause.UNKNOWN
                    os.write(2, f"{LOG_UNWRITTEN}{clock}: {cause}: {error}{KEPT}\n".encode())

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_events(store: ObjectStore, prefix: str) -> list[Event]:
    """All events of a run, by time; lines that cannot be parsed are skipped."""
    keys = [info.key for info in store.list(f"{prefix}/events")]
    return sorted(told_in(read_batches(store, keys), {}), key=lambda event: event.time)


def told_in(batches: Iterable[tuple[str, bytes]], latest: dict[str, float]) -> Iterator[Event]:
    """Events of keys and contents, a writer's in order; ``latest``: when each was last heard, to keep."""
    for key, data in batches:
        for event in parse_batch(data, writer := key.rsplit("/", 2)[-2]):
            # A clock that was set back does not turn round what its writer told.
            before = latest.get(writer, event.time)
            latest[writer] = max(event.time, before)
            yield replace(event, time=before) if before - event.time > SET_BACK_SECONDS else event


def read_batches(store: ObjectStore, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Key and content of batches, in order, without those that are gone.

    A training writes one each second at first, so many are read at a time.
    """

    def read(key: str) -> bytes:
        try:
            return store.get(key)
        except ObjectMissing:
            return b""

    with ThreadPoolExecutor(READERS) as pool:
        yield from zip(keys, pool.map(read, keys), strict=True)


def parse_batch(data: bytes, writer: str) -> Iterator[Event]:
    """Events of one batch object; lines that cannot be parsed are skipped."""
    for line in data.decode(errors="replace").splitlines():
        try:
            record = json.loads(line)
            yield Event(float(record.pop("time")), str(record.pop("kind")), writer, record)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
