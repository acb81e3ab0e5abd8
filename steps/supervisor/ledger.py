"""The run's ledger, next to its checkpoints: gangs, restarts, failures, exclusions; append-only.

Of two supervisors of one run the later wins: each begins with an entry of its own, and one that finds the beginning of
another after its own has been superseded and ends (fenced), without a further entry.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal

from argosy.steps.appendlog import AppendLog
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.store.base import ObjectStore
from argosy.steps.supervisor.budget import Decision, Failure
from argosy.steps.verdict import Verdict

Kind = Literal[
    "supervisor", "gang", "restart", "failure", "grown", "excluded", "gang_deleted", "finished", "ended", "skipped"
]
EXCLUSION_SECONDS = 24 * 3600.0
"""A node that was excluded is tried again after a day."""


class Ledger:
    """Entries of all supervisors of a run; this one belongs to workflow ``workflow_uid``."""

    def __init__(self, store: ObjectStore, prefix: str, workflow_uid: str, workflow: str = "") -> None:
        """Read what is there and announce ourselves."""
        self._log = AppendLog(store, f"{prefix}/ledger")
        self._uid = workflow_uid
        self._me = uuid.uuid4().hex
        self._entries: list[dict[str, Any]] = []
        self._seq = 0
        while True:
            self._read()
            if self._write(self._record("supervisor", {"workflow": workflow})):
                return

    def _read(self) -> None:
        found = self._log.entries()
        self._entries = [entry.record for entry in found]
        self._seq = found[-1].seq if found else 0

    def _record(self, kind: Kind, fields: dict[str, Any]) -> dict[str, Any]:
        mine = {"workflow_uid": self._uid, "supervisor": self._me, "nonce": uuid.uuid4().hex}
        return {"kind": kind, "time": time.time(), **mine, **fields}

    def _write(self, record: dict[str, Any]) -> bool:
        if not self._log.append(self._seq + 1, record):
            return False
        self._entries.append(record)
        self._seq += 1
        return True

    def append(self, kind: Kind, **fields: Any) -> None:
        """Add an entry; durable when it returns.

        Raises:
            StepError: ``fenced`` when another supervisor of this run has begun since.
        """
        record = self._record(kind, fields)
        while self._is_newest():
            if self._write(record):
                return
            # An entry of ours in our way is one whose answer was lost: the store failed, and it was there all the same.
            self._read()
        newest, mine = self._began(), self.last("supervisor")
        name = str(newest.get("workflow") or self.owner)
        if mine is not None and name == mine.get("workflow") and self.owner != self._uid:
            name = f"{name} of uid {self.owner}, another of that name (in another namespace, or made anew),"
        quote = f"that of workflow {name} has begun since"
        raise StepError(Cause.FENCED, "another supervisor owns this run now", quote=quote)

    def is_ours(self) -> bool:
        """Whether no other supervisor of this run has begun since; the store is asked."""
        self._read()
        return self._is_newest()

    def _is_newest(self) -> bool:
        # Who was only asked whether it is knows of entries after its own, and would write its next behind them.
        return bool(self._began()["supervisor"] == self._me)

    def _began(self) -> dict[str, Any]:
        return next(entry for entry in reversed(self._entries) if entry["kind"] == "supervisor")

    def add_failure(self, failure: Failure, decision: Decision, verdict: Verdict) -> None:
        """Append a failure with all its fields, and what is going to be done about it."""
        told = {**verdict.record(), "consequences": []}
        self.append("failure", **asdict(failure), decision=asdict(decision), verdict=told)

    @property
    def owner(self) -> str:
        """The workflow whose supervisor began last, as far as we know."""
        return str(self._began()["workflow_uid"])

    def of(self, *kinds: Kind) -> Iterator[dict[str, Any]]:
        """Entries of this workflow with one of these kinds, oldest first."""
        return (entry for entry in self._entries if entry["kind"] in kinds and entry["workflow_uid"] == self._uid)

    def last(self, *kinds: Kind) -> dict[str, Any] | None:
        """The newest entry of this workflow with one of these kinds."""
        return next(reversed(list(self.of(*kinds))), None)

    def failures(self) -> list[Failure]:
        """This workflow's failures, oldest first."""
        names = Failure.__dataclass_fields__
        rows = ({key: value for key, value in entry.items() if key in names} for entry in self.of("failure"))
        return [Failure(**{**row, "cause": Cause(row["cause"])}) for row in rows]

    def skipped(self) -> str:
        """Steps whose data are passed over, in this run for good: ``20-24 31-35``."""
        return " ".join(f"{entry['first']}-{entry['last']}" for entry in self._entries if entry["kind"] == "skipped")

    def last_attempt(self) -> int:
        """Number of the newest gang of any workflow of this run; 0 before the first."""
        return max((entry["attempt"] for entry in self._entries if entry["kind"] == "gang"), default=0)

    def excluded(self) -> tuple[str, ...]:
        """Nodes that no gang of this run may use now, whichever workflow found them."""
        since = time.time() - EXCLUSION_SECONDS
        return tuple(
            sorted({entry["node"] for entry in self._entries if entry["kind"] == "excluded" and entry["time"] > since})
        )
