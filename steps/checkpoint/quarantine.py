"""Checkpoints that were found corrupt: set aside with the reason, never deleted, never restored."""

from __future__ import annotations

import json
import time

from argosy.steps.checkpoint.log import joined
from argosy.steps.checkpoint.parallel import in_parallel
from argosy.steps.store.base import ObjectStore


def set_aside(store: ObjectStore, prefix: str, digest: str, reason: str) -> None:
    """Quarantine a digest; the first reason stays."""
    record = {"digest": digest, "reason": reason, "created": round(time.time(), 3)}
    store.put_if_absent(joined(prefix, f"quarantine/{digest}.json"), json.dumps(record).encode())


def set_aside_digests(store: ObjectStore, prefix: str) -> set[str]:
    """The digests in quarantine (one listing)."""
    listed = store.list(joined(prefix, "quarantine"))
    return {info.key.rsplit("/", 1)[-1].removesuffix(".json") for info in listed}


def reasons(store: ObjectStore, prefix: str) -> dict[str, str]:
    """Why each digest is in quarantine."""

    def reason(digest: str) -> str:
        try:
            return str(json.loads(store.get(joined(prefix, f"quarantine/{digest}.json")))["reason"])
        except (ValueError, KeyError, TypeError):
            return "unreadable record"

    digests = sorted(set_aside_digests(store, prefix))
    return dict(zip(digests, in_parallel(reason, digests, threads=8, small=4), strict=True))
