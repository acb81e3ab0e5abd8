"""What rank shims tell, sorted to where it belongs."""

from __future__ import annotations

from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves

_COMMIT_FIELDS = ("step", "digest", "bytes", "seconds", "generation", "final")


class RankRecords:
    """Called by the hub's thread with every record."""

    def __init__(self, reporter: Reporter, saves: Saves, node: str) -> None:
        self._reporter = reporter
        self._saves = saves
        self._node = node

    def __call__(self, record: dict[str, Any]) -> None:
        """Pass one record on; unknown kinds are for a newer launch and are left alone."""
        kind = record.pop("type", "")
        if kind == "step":
            self._saves.step(int(record["rank"]), int(record["step"]), float(record.get("time", 0.0)))
            self._reporter.step(record)
        elif kind == "ending":
            self._reporter.ending(Ending.from_json(record["ending"]))
        elif kind == "checkpoint":
            self._saves.committed()
            self._reporter.event(
                "checkpoint_committed", **{name: record[name] for name in _COMMIT_FIELDS if name in record}
            )
        elif kind == "injected":
            self._reporter.event(
                "injected", fault=record["fault"], rank=record["rank"], node=self._node, step=record["step"]
            )
        elif kind == "failure":
            self._reporter.fail(StepError(Cause(record["cause"]), record["message"], quote=record["message"]))
        elif kind == "note":
            print(f"argosy: {record['message']}", flush=True)
