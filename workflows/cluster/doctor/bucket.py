"""Whether the store's bucket is there, as far as this machine can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.contract.causes import Cause
from argosy.steps.record.building import STORE_URI
from argosy.steps.store.base import StoreError
from argosy.workflows.cluster.doctor.check import Check
from argosy.workflows.cluster.store import open_run_store

_SECONDS = 3.0
_FROM_HERE = "the run's pods have keys and a network of their own; `argosy submit` pushes the code from here"


def bucket(api: Api, workflow: Mapping[str, Any]) -> Iterator[Check]:
    """By this machine's credentials: what they may not, and what is not reached from here, is unknown."""
    uri = str((workflow["metadata"].get("annotations") or {}).get(STORE_URI, ""))
    if not uri or uri.startswith("file:"):
        return
    what = f"store {uri}"
    try:
        store = open_run_store(uri, workflow, api.namespace, _SECONDS)
        next(iter(store.scan()), None)
    except StoreError as error:
        if error.cause == Cause.S3_MISSING:
            yield Check("missing", what, f"{error}", "make the bucket, or correct storage.uri")
        else:
            yield Check("unknown", what, " ".join(str(error).split())[:300], _FROM_HERE)
        return
    yield Check("ok", what, "answers")
