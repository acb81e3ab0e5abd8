"""A run that is known by its place in the store only: its Workflow may be gone."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.contract.arguments import AdmitArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import RUN_NAME, STORE_URI, build_record, prefix_of
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.heard import last_heard
from argosy.steps.runlog import read_events
from argosy.steps.store.base import ObjectMissing, ObjectStore
from argosy.steps.store.opening import check_uri
from argosy.workflows.cluster.kept_lines import kept_lines, last_of_each
from argosy.workflows.cluster.store import open_run_store

_EVENTS = re.compile(r"(?:([^/]+)/)?runs/([^/]+)/events/")


@dataclass(frozen=True)
class StoredRun:
    """The run at ``ROOT/NAME/runs/RUN_ID``; ``root`` and ``name`` are the two before and after the slash."""

    root: str
    run_name: str
    name: str

    @property
    def where(self) -> str:
        """Where it was found, for messages."""
        return f"the store {self.root}"

    @property
    def report(self) -> Path:
        """Where a report goes that nobody named a file for."""
        return Path(f"{self.name}.html")

    def command(self, verb: str, *arguments: object) -> str:
        """``argosy VERB ...`` as it finds this run again."""
        uri = f"{self.root}/{self.run_name}/runs/{self.name}"
        return shlex.join(["argosy", verb, *(uri if each == self.name else str(each) for each in arguments)])

    def state(self) -> dict[str, Any]:
        """What ``finalize`` left, in the local engine's form; without it the run has not ended, or died silently.

        ``silent_since``: when it was last heard of, after a silence in which another workflow may take over what it
        claims.
        """
        if summary := self.summary():
            told = {"name": summary.get("workflow", self.name), "phase": summary.get("phase", "Running")}
            return {**self._known, **told}
        heard = last_heard(self.store(), self.prefix)
        silent = time.time() - heard >= AdmitArgs.lease_seconds
        return {**self._known, "phase": "Running", **({"silent_since": heard} if silent else {})}

    @property
    def _known(self) -> dict[str, Any]:
        annotations = {STORE_URI: self.root, RUN_NAME: self.run_name}
        return {"name": self.name, "annotations": annotations, "parameters": {"run-id": self.name}}

    @property
    def prefix(self) -> str:
        """The run's in its store."""
        return prefix_of(self._known)

    def summary(self) -> dict[str, Any]:
        """What ``finalize`` left; empty: nothing."""
        try:
            found: dict[str, Any] = json.loads(self.store().get(f"{self.prefix}/summary.json"))
        except (ObjectMissing, ValueError):
            return {}
        return found

    def standing(self) -> dict[str, Any]:
        """The state: nobody is left to ask."""
        return self.state()

    def store(self, *, quiet: bool = False) -> ObjectStore:
        """The run's store."""
        return open_run_store(self.root, {}, "", quiet=quiet)

    def written(self, wanted: Callable[[str], bool], pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
        """What failed ranks wrote last; nobody keeps the rest."""
        return last_of_each(kept_lines(self.store(), self.prefix), wanted, pod, tail)

    def record(self) -> RunRecord:
        """What is known now."""
        return build_record(read_events(self.store(), self.prefix), self.state(), time.time())


def find_stored_run(uri: str) -> StoredRun:
    """The run at ``uri``.

    Raises:
        InputError: no uri of a run, or nothing there.
    """
    parts = uri.rstrip("/").rsplit("/", 3)
    if len(parts) != 4 or parts[2] != "runs" or not {"", ".", ".."}.isdisjoint(parts):
        raise InputError(f"RUN_ID {uri!r}: no place of a run; it ends in /NAME/runs/RUN_ID, as argosy ls shows")
    run = StoredRun(parts[0], parts[1], parts[3])
    if next(iter(run.store().list(f"{parts[1]}/runs/{parts[3]}/events")), None) is None:
        raise InputError(f"RUN_ID {uri!r}: no run has left events there; argosy top lists those that are known")
    return run


def every_stored_run(uri: str) -> list[StoredRun]:
    """The runs that have left events below ``uri``, a store's root or the place of one name in it, by name.

    The store's whole listing is read, and nothing of it is kept.

    Raises:
        InputError: no uri, or no such folder. StoreError: the store failed.
    """
    if "://" not in uri:
        way = "write what storage.uri says, as in s3://bucket/argosy, or name a folder with --state-dir"
        raise InputError(f"STORE {uri!r}: no uri; {way}")
    root = check_uri(uri, "STORE")
    above, _, name = root.rpartition("/")
    keys = (info.key for info in open_run_store(root, {}, "").scan())
    runs = sorted({(found[1] or "", found[2]) for key in keys if (found := _EVENTS.match(key))})
    return [StoredRun(root, each, run) if each else StoredRun(above, name, run) for each, run in runs]
