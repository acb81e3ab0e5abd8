"""A checkpoint of several nodes' files, passed on between node 0, which commits it, and the others.

Nothing here is durable and nothing needs to be: every report repeats what its node has to say, so a supervisor that
was just started knows all of it after one report of each node. Names of saves are never used twice, so what comes
late or twice is told by its name.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from argosy.steps.contract.channel import Part, Report, Save


class Gathering:
    """What the nodes of one restart said; the channel's lock is held around every call."""

    def __init__(self) -> None:
        self._save: Save | None = None
        self._parts: dict[int, Part] = {}

    def hear(self, report: Report) -> None:
        """Take note of a report of the restart that runs."""
        if report.node_rank == 0:
            self._save = report.save
        if report.part is not None:
            self._parts[report.node_rank] = report.part

    def news(self, node_rank: int) -> dict[str, Any]:
        """Fields of the orders for a node."""
        if self._save is None:
            return {}
        if node_rank != 0:
            return {"save": asdict(self._save)}
        # Some may be of an older save: node 0 looks at their names, since it may have begun another by now.
        return {"parts": [asdict(part) for rank, part in sorted(self._parts.items()) if rank]}
