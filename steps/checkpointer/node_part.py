"""One part per node: the node's leader gathers what its ranks stored and writes the part that lists it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from argosy.steps.checkpoint.manifest import PartRef, ShardFile
from argosy.steps.checkpointer.coordinator import Work, disagreement, failure, failure_of, named
from argosy.steps.checkpointer.lines import Record
from argosy.steps.contract.causes import Cause


class NodePart:
    """Between the writers of one node and the coordinator; as free of sockets as the coordinator is."""

    def __init__(
        self,
        ranks: Sequence[int],
        timeout: float,
        *,
        store: Callable[[str, Sequence[ShardFile]], PartRef],
        work: Work,
        tell: Callable[[Record], None],
        clock: Callable[[], float],
    ) -> None:
        """``ranks``: how many the node has; ``store(name, files)`` writes the part; ``tell`` goes up."""
        self._ranks = frozenset(ranks)
        self._timeout = timeout
        self._clock = clock
        self._began: dict[int, float] = {}
        self._store = store
        self._work = work
        self._tell = tell
        self._reports: dict[int, dict[int, Record]] = {}
        self._gone: set[int] = set()

    def receive(self, record: Record) -> None:
        """A record of one of the node's writers: ``stored``, or what is passed on as it is."""
        if record["is"] != "stored":
            return self._tell(record)
        number = int(record["number"])
        reports = self._reports.setdefault(number, {})
        self._began.setdefault(number, self._clock())
        reports[int(record["rank"])] = record
        if len(reports) == len(self._ranks):
            del self._reports[number], self._began[number]
            self._part(number, [reports[rank] for rank in sorted(reports)])
        else:
            self._check_gone(number)

    def left(self, rank: int) -> None:
        """The writer of ``rank`` has ended: what it has not stored never will be."""
        self._gone.add(rank)
        for number in sorted(self._reports):
            self._check_gone(number)

    def _check_gone(self, number: int) -> None:
        missing = self._gone - self._reports[number].keys()
        if missing:
            text = f"{named(missing)} left before save {number} was stored: its writer ended"
            self._end(number, failure(Cause.PEER_LOST, text))

    def _end(self, number: int, reason: Record) -> None:
        del self._reports[number], self._began[number]
        self._tell({"is": "refused", "number": number, "rank": min(self._ranks), "failure": reason})

    def tick(self) -> None:
        """Call it now and then: who of this node has not stored in time ends the save, by name."""
        for number, began in sorted(self._began.items()):
            if self._clock() - began > self._timeout:
                late = named(self._ranks - self._reports[number].keys())
                first = f"{self._timeout:.0f} s of the first of the node that did"
                self._end(number, failure(Cause.HANG, f"{late} did not store save {number} within {first}"))

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
