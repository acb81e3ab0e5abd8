"""One part per node: the node's leader gathers what its ranks stored and writes the part that lists it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from argosy.steps.checkpoint.manifest import PartRef, ShardFile
from argosy.steps.checkpointer.coordinator import Work, disagreement, failure_of
from argosy.steps.checkpointer.lines import Record


class NodePart:
    """Between the writers of one node and the coordinator; as free of sockets as the coordinator is."""

    def __init__(
        self,
        ranks: int,
        *,
        store: Callable[[str, Sequence[ShardFile]], PartRef],
        work: Work,
        tell: Callable[[Record], None],
    ) -> None:
        """``ranks``: how many the node has; ``store(name, files)`` writes the part; ``tell`` goes up."""
        self._ranks = ranks
        self._store = store
        self._work = work
        self._tell = tell
        self._reports: dict[int, dict[int, Record]] = {}

    def receive(self, record: Record) -> None:
        """A record of one of the node's writers: ``stored``, or what is passed on as it is."""
        if record["is"] != "stored":
            return self._tell(record)
        number = int(record["number"])
        reports = self._reports.setdefault(number, {})
        reports[int(record["rank"])] = record
        if len(reports) == self._ranks:
            self._part(number, [reports[rank] for rank in sorted(self._reports.pop(number))])

    def _part(self, number: int, reports: list[Record]) -> None:
        claims = [[r["step"], r["final"], r["fingerprint"], r["rank"]] for r in reports]
        # What all agree on is said once: the coordinator's message stays as small for 8 ranks as for one.
        distinct = [claim for n, claim in enumerate(claims) if all(claim[:3] != other[:3] for other in claims[:n])]
        message: Record = {
            "is": "part",
            "number": number,
            "name": reports[0]["name"],
            "ranks": [report["rank"] for report in reports],
            "claims": distinct,
            "stall": max(report["stall"] for report in reports),
        }
        if disagreement(claims):
            return self._tell({**message, "part": None})
        files = [ShardFile(**file) for report in reports for file in report["files"]]

        def done(ref: Any, error: BaseException | None) -> None:
            if error is not None:
                rank = reports[0]["rank"]
                self._tell({"is": "refused", "number": number, "rank": rank, "failure": failure_of(error)})
            else:
                self._tell({**message, "part": asdict(ref)})

        self._work(lambda: self._store(reports[0]["name"], files), done)
