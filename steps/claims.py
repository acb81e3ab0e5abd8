"""Who trains what: claims on (run name, run, dataset), so that one event starts one training.

A claim log holds records of workflows, by uid; the latest record of a uid is its state. A workflow that is
``running`` counts as alive while its claim, its heartbeat or its event log is younger than its lease.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

from argosy.steps.appendlog import AppendLog, read_as
from argosy.steps.contract.arguments import RunArgs
from argosy.steps.contract.layout import claim_prefix, run_prefix
from argosy.steps.store.base import ObjectMissing, ObjectStore

State = Literal["running", "succeeded", "failed", "released"]
BEAT_SECONDS = 60.0


def admission_key(name: str, run_digest: str, dataset_digest: str) -> str:
    """Names one piece of work: 64 hex digits over the run's name, its description and its data."""
    return hashlib.sha256(json.dumps([name, run_digest, dataset_digest]).encode()).hexdigest()


@dataclass(frozen=True)
class RunClaim:
    """One record of a claim log; ``time`` in seconds since 1970, ``lease_seconds`` of silence mean it is dead."""

    workflow: str
    workflow_uid: str
    run_id: str
    state: State
    time: float
    lease_seconds: float
    event: str = ""
    reason: str = ""

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """Read a record; unknown keys are ignored, an unknown state counts as running (the careful reading)."""
        state = record.get("state")
        return read_as(cls, {**record, "state": state if state in get_args(State) else "running"})


class ClaimLog:
    """The claims on one admission key."""

    def __init__(self, store: ObjectStore, name: str, key: str) -> None:
        self._store = store
        self._name = name
        self._log = AppendLog(store, claim_prefix(name, key))

    def read(self) -> tuple[int, dict[str, RunClaim]]:
        """Number of the last entry (0: none), and each workflow's latest record by uid, oldest first."""
        latest: dict[str, RunClaim] = {}
        seq = 0
        for entry in self._log.entries():
            claim = RunClaim.of(entry.record)
            latest.pop(claim.workflow_uid, None)
            latest[claim.workflow_uid] = claim
            seq = entry.seq
        return seq, latest

    def append(self, seq: int, claim: RunClaim) -> bool:
        """Add ``claim`` as entry ``seq``; False when another workflow was first."""
        return self._log.append(seq, asdict(claim))

    def settle(self, workflow_uid: str, state: State) -> bool:
        """Record how a workflow that holds a claim ended; False when it holds none."""
        while True:
            seq, latest = self.read()
            held = latest.get(workflow_uid)
            if held is None:
                return False
            if held.state == state:
                return True
            record = {**asdict(held), "state": state, "time": time.time(), "reason": "workflow ended"}
            if self._log.append(seq + 1, record):
                return True

    def last_sign(self, claim: RunClaim) -> float:
        """When the claim's workflow was last heard of, seconds since 1970."""
        prefix = run_prefix(self._name, claim.run_id)
        beat = beat_at(self._store, beat_key(prefix, claim.workflow_uid))
        return max(claim.time, beat, last_event(self._store, prefix))

    def is_alive(self, claim: RunClaim) -> bool:
        """Whether a running claim's workflow gave a sign of life within its lease."""
        return claim.state == "running" and time.time() - self.last_sign(claim) < claim.lease_seconds


def beat_key(prefix: str, workflow_uid: str) -> str:
    """Key of a workflow's sign of life below its run's prefix."""
    return f"{prefix}/alive/{workflow_uid}.json"


def beat_at(store: ObjectStore, key: str) -> float:
    """Time of the sign of life at ``key``, 0.0 where there is none."""
    try:
        return float(json.loads(store.get(key))["time"])
    except (ObjectMissing, ValueError, KeyError, TypeError):
        return 0.0


def last_event(store: ObjectStore, prefix: str) -> float:
    """Time of the newest event of a run: only each writer's last batch is read."""
    last_batch: dict[str, str] = {}
    for info in store.list(f"{prefix}/events"):
        last_batch[info.key.rpartition("/")[0]] = info.key
    newest = 0.0
    for key in last_batch.values():
        for line in store.get(key).splitlines()[-1:]:
            try:
                newest = max(newest, float(json.loads(line)["time"]))
            except (ValueError, KeyError, TypeError):
                continue
    return newest


@contextmanager
def heartbeat(store: ObjectStore, args: RunArgs) -> Iterator[None]:
    """Sign of life for this workflow's claim while a long step runs; a store that fails meanwhile does no harm."""
    done = threading.Event()

    def beat() -> None:
        while True:
            try:
                store.put(beat_key(args.prefix, args.workflow_uid), json.dumps({"time": time.time()}).encode())
            except Exception as error:  # the next beat may succeed; the lease is many beats long
                os.write(2, f"argosy: no sign of life written: {error}\n".encode())
            if done.wait(BEAT_SECONDS):
                return

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def admission_note_key(prefix: str, workflow_uid: str) -> str:
    """Key of the note that leads ``finalize`` from a workflow to its claim."""
    return f"{prefix}/admission/{workflow_uid}.json"
