"""When a run was last heard of, by whatever its store tells."""

from __future__ import annotations

import json
import time
from collections.abc import Collection

from argosy.steps.checkpoint.log import CommitLog
from argosy.steps.claims import BEAT_SECONDS, ClaimLog, beat_at, last_event
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store.base import ObjectStore


def last_beat(store: ObjectStore, prefix: str) -> float:
    """The newest sign of life of any workflow of the run, seconds since 1970; 0.0 for none."""
    return max((beat_at(store, info.key) for info in store.list(f"{prefix}/alive".lstrip("/"))), default=0.0)


def last_commit(store: ObjectStore, prefix: str) -> float:
    """When the log's end is a commit, its time: what a person decided is no sign of life, nor a log that is damaged."""
    try:
        tail = CommitLog(store, prefix).tail()
    except StepError as error:
        if error.cause != Cause.CHECKPOINT_CORRUPT:
            raise
        return 0.0
    return tail.created if tail is not None and tail.kind == "commit" else 0.0


def last_sign(store: ObjectStore, prefix: str) -> float:
    """The newer of the two: what tells that somebody trains."""
    return max(last_beat(store, prefix), last_commit(store, prefix))


def last_heard(store: ObjectStore, prefix: str, sign: float | None = None) -> float:
    """The newest of all: between two steps nobody's heart beats, and ranks train and commit without their supervisor,
    whose next pod may wait for a node. ``sign``: :func:`last_sign`, where it has been asked.
    """
    return max(last_sign(store, prefix) if sign is None else sign, last_event(store, prefix))


def going_on(store: ObjectStore, prefix: str, ended: Collection[str] = ()) -> str:
    """Which workflow has this run and has not ended, "" for none that is known; ``ended``: uids of those that have.

    One run id may be given to several, to go on where another ended: in one namespace, on another cluster, here.
    Without ``ended`` only claims are looked at: whose heart beats, :func:`last_sign` has asked.
    """
    noted = {_uid(info.key): info.key for info in store.list(f"{prefix}/admission")}
    for other in noted.keys() - {*ended}:
        claims = ClaimLog(store, prefix.rpartition("/runs/")[0], str(json.loads(store.get(noted[other])).get("key")))
        claim = claims.read()[1].get(other)
        if claim is not None and claim.run_id == prefix.rpartition("/")[2] and claims.is_alive(claim):
            return claim.workflow
    for info in store.list(f"{prefix}/alive") if ended else ():
        other = _uid(info.key)  # where no step of it admits, nobody settles anything
        if other not in {*ended, *noted} and time.time() - beat_at(store, info.key) < 3 * BEAT_SECONDS:
            return f"of uid {other}"
    return ""


def _uid(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".json")
