"""What a run knows of a checkpoint's quality: the evaluation, and what the gate decided on it."""

from __future__ import annotations

import json
import math
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.store.base import ObjectMissing, ObjectStore


def evaluation_key(prefix: str, digest: str) -> str:
    """Key of the evaluation of a checkpoint below its run's prefix."""
    return f"{prefix}/evaluation/{digest}.json"


def gate_key(prefix: str, digest: str) -> str:
    """Key of the gate's decision on a checkpoint below its run's prefix."""
    return f"{prefix}/gate/{digest}.json"


def read_record(store: ObjectStore, key: str) -> dict[str, Any] | None:
    """The JSON object at ``key``, or None.

    Raises:
        StepError: ``data_corrupt`` when something else lies there.
    """
    try:
        record = json.loads(store.get(key))
    except ObjectMissing:
        return None
    except ValueError as error:
        raise StepError(Cause.DATA_CORRUPT, f"{store.uri}/{key} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise StepError(Cause.DATA_CORRUPT, f"{store.uri}/{key} is not a JSON object")
    return record


def write_record(store: ObjectStore, key: str, record: dict[str, Any]) -> None:
    """Write a JSON object; the last writer wins."""
    store.put(key, json.dumps(record, indent=1, default=str).encode() + b"\n")


def finite(text: str, field: str) -> float:
    """The number in ``text``.

    Raises:
        InputError: it is no number, or infinite, or not a number; ``field`` is named.
    """
    try:
        value = float(text)
    except ValueError as error:
        raise InputError(f"{field} = {text!r}: not a number") from error
    if not math.isfinite(value):
        raise InputError(f"{field} = {text!r}: a finite number is needed to compare")
    return value
