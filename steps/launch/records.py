"""What rank shims tell, sorted to where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.evidence import NodeEvidence
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves
from argosy.steps.launch.step_clock import Word

_STEP_FIELDS: dict[str, Callable[[Any], Any]] = {
    "rank": int, "step": int, "time": float, "loss": float, "tokens": float, "end_step": int,
    "own": float,
}  # fmt: skip
_COMMIT_FIELDS = ("step", "digest", "bytes", "seconds", "generation", "final")
_PREFLIGHT_FIELDS = ("summary", "flaws", "seconds", "enforced")
_RESTORE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "rank": int, "bytes": int, "fetched_bytes": int, "seconds": float,
}  # fmt: skip
_STREAM_FIELDS: dict[str, Callable[[Any], Any]] = {
    "rank": int, "bytes": int, "fetched_bytes": int, "requests": int, "refetched": int, "waited_seconds": float,
}  # fmt: skip


class RankRecords:
    """Sorts what rank shims tell; the hub's thread calls it with every record."""

    def __init__(self, reporter: Reporter, saves: Saves, evidence: NodeEvidence, node: str) -> None:
        self._reporter = reporter
        self._evidence = evidence
        self._saves = saves
        self._node = node

    def __call__(self, record: dict[str, Any]) -> None:
        """Pass one record on; unknown kinds are for a newer launch and are left alone.

        A script may report nonsense (a step that is no number): that costs it the record and nobody anything else.
        """
        try:
            self._sort(record)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            print(f"argosy: a report of a rank cannot be read and is left out: {error}", flush=True)

    def _sort(self, record: dict[str, Any]) -> None:
        kind = record.pop("type", "")
        if kind == "step":
            told = {name: read(record[name]) for name, read in _STEP_FIELDS.items() if record.get(name) is not None}
            anew = bool(record.get("anew"))
            word = Word(
                told["step"],
                told.setdefault("time", 0.0),
                str(record.get("kind", "report")),
                told.get("end_step", 0),
                int(record.get("per_epoch", 0)),
                bool(record.get("relative")),
            )
            self._saves.step(told["rank"], word, anew=anew)
            if "loss" in told:
                self._saves.told(told["rank"], told["loss"])
            self._reporter.step(told, anew=anew)
        elif kind == "worked":
            self._reporter.worked(int(record["rank"]), [[float(part) for part in each] for each in record["steps"]])
        elif kind == "started":
            self._saves.started(int(record["rank"]), int(record["pid"]))
            self._evidence.started(int(record["rank"]), int(record["pid"]))
        elif kind == "ending":
            self._reporter.ending(Ending.from_json(record["ending"]))
        elif kind == "checkpoint":
            self._saves.committed()
            self._reporter.event(
                "checkpoint_committed", **{name: record[name] for name in _COMMIT_FIELDS if name in record}
            )
        elif kind == "kept":
            self._saves.keep(record)
        elif kind == "durable":
            self._saves.durable(str(record["name"]))
        elif kind == "restored":
            self._saves.restored(**{name: read(record[name]) for name, read in _RESTORE_FIELDS.items()})
        elif kind == "streamed":
            self._reporter.event(
                "streamed", node=self._node, **{name: read(record[name]) for name, read in _STREAM_FIELDS.items()}
            )
        elif kind == "injected":
            named = {name: record[name] for name in ("fault", "rank", "step", "phase")}
            self._reporter.event("injected", node=self._node, **named)
        elif kind == "failure":
            error = StepError(Cause(record["cause"]), record["message"], quote=record["message"])
            self._reporter.fail(error, node=record.get("node"))
        elif kind == "preflight":
            self._reporter.event("preflight", **{name: record[name] for name in _PREFLIGHT_FIELDS})
        elif kind == "note":
            print(f"argosy: {record['message']}", flush=True)
