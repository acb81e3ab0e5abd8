"""What is kept of each start that failed: the nodes' archives, and beside them what the host knows of its pods."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import bundle_prefix
from argosy.steps.gang.host import GangHost
from argosy.steps.store.base import ObjectInfo, ObjectStore

KEPT = 10
"""Starts whose evidence is kept, the newest ones."""
HOST_BYTES = 1 << 20
HOST_SECONDS = 5.0
"""So long the host's word is waited for when the rest is there."""
_NAMED = re.compile(r"/attempts/(?P<gang>[^/]+-a(?P<attempt>\d+))/bundle/(?P<restart>\d+)/")


@runtime_checkable
class TellingHost(Protocol):
    """A host that knows more of a gang than the states of its pods."""

    def evidence(self, name: str) -> dict[str, Any]:
        """Conditions of its pods, events about them, the state of their nodes."""


class Bundles:
    """Of one run."""

    def __init__(self, store: ObjectStore, prefix: str, host: GangHost) -> None:
        """``prefix`` of the run."""
        self._store, self._prefix, self._host = store, prefix, host
        self._thread: threading.Thread | None = None
        self._kept: set[tuple[int, int, str]] | None = None
        """(attempt, restart, gang) of starts of which something may be there; None: not looked for yet."""

    def begin(self, gang: str, restart: int) -> None:
        """Ask the host while its pods are still there; nobody waits for what it has to ask others."""
        states = [asdict(state) for state in self._host.pods(gang)]
        self._thread = threading.Thread(target=self._ask, args=(gang, restart, states), name="evidence", daemon=True)
        self._thread.start()

    def _ask(self, gang: str, restart: int, states: list[dict[str, Any]]) -> None:
        try:
            told: dict[str, Any] = {"states": states}
            if isinstance(self._host, TellingHost):
                told |= self._host.evidence(gang)
            key = f"{bundle_prefix(self._prefix, gang, restart)}/host.json"
            self._store.put(key, _bounded(told))
        except (StepError, OSError) as error:  # evidence is worth no failure
            print(f"argosy: what the host knows was not stored: {error}", file=sys.stderr)

    def found(self, gang: str, restart: int) -> list[dict[str, Any]]:
        """What is there of a start that failed, key and bytes; what was kept of old ones is removed."""
        if self._thread is not None:
            self._thread.join(HOST_SECONDS)
        try:
            return self._found(gang, restart)
        except StepError as error:
            print(f"argosy: the evidence was not listed: {error}", file=sys.stderr)
            return []

    def _found(self, gang: str, restart: int) -> list[dict[str, Any]]:
        if self._kept is None:  # once: in a long run the evidence of a thousand nodes are a hundred pages, and more
            named = (_NAMED.search(info.key) for info in self._store.list(f"{self._prefix}/attempts"))
            self._kept = {(int(each["attempt"]), int(each["restart"]), each["gang"]) for each in named if each}
        mine = self._of(gang, restart)
        self._kept.add((int(gang.rpartition("-a")[2]), restart, gang))  # nodes may store something yet
        for each in sorted(self._kept)[:-KEPT]:
            for info in self._of(each[2], each[1]):
                self._store.delete(info.key)
            self._kept.discard(each)
        return [{"key": info.key, "bytes": info.size} for info in mine]

    def _of(self, gang: str, restart: int) -> list[ObjectInfo]:
        return list(self._store.list(bundle_prefix(self._prefix, gang, restart)))


def _bounded(told: dict[str, Any]) -> bytes:
    """JSON of at most :data:`HOST_BYTES`: of the longest lists the end is kept."""
    while len(data := json.dumps(told, indent=1, default=str).encode()) > HOST_BYTES:
        lists = [(len(json.dumps(each, default=str)), name) for name, each in told.items() if isinstance(each, list)]
        if not lists:
            return data[:HOST_BYTES]
        name = max(lists)[1]
        told = {**told, name: _later_half(told[name]), "left_out": "of long lists the end is kept"}
    return data


def _later_half(listed: Iterable[Any]) -> list[Any]:
    every = list(listed)
    return every[(len(every) + 1) // 2 :]
