"""What ranks wrote last, from the evidence that the supervisor keeps of each restart that failed."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from argosy.steps.runlog import read_batches
from argosy.steps.store.base import ObjectStore


def kept_lines(store: ObjectStore, prefix: str) -> Iterator[tuple[str, str]]:
    """(pod, line), oldest restart first; a line names its rank as in the pod's own log."""
    keys = [info.key for info in store.list(f"{prefix}/attempts") if "/evidence/" in info.key]
    for _, data in read_batches(store, keys):
        try:
            report: dict[str, Any] = json.loads(data)
            for ending in report.get("endings") or []:
                yield from (
                    (str(report["pod"]), f"[rank {ending['rank']}] {line}") for line in ending.get("tail") or []
                )
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # written by an older or half dead supervisor


def last_of_each(
    lines: Iterable[tuple[str, str]], wanted: Callable[[str], bool], pod: str, tail: int | None
) -> Iterator[tuple[str, str]]:
    """Wanted lines of pods whose name contains ``pod``, of each at most the last ``tail``."""
    by_pod: dict[str, deque[str]] = {}
    for name, line in lines:
        if pod in name and wanted(line):
            by_pod.setdefault(name, deque(maxlen=tail)).append(line)
    for name, kept in by_pod.items():
        yield from ((name, line) for line in kept)
