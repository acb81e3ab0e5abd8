"""What the nodes kept of the starts that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.record.reading import whole
from argosy.steps.record.wording import size
from argosy.steps.runlog import Event


@dataclass(frozen=True)
class Evidence:
    """Of one start: how much it is."""

    attempt: int
    restart: int
    bytes: int

    @property
    def sentence(self) -> str:
        """``120.4 KiB packed``: an archive of each node, of which nobody counts the files before it is unpacked."""
        return f"{size(self.bytes)} packed"


def evidence_of(events: Sequence[Event]) -> tuple[Evidence, ...]:
    """All that was kept, in order."""
    return tuple(_evidence(event) for event in events if event.kind == "bundle")


def _evidence(event: Event) -> Evidence:
    return Evidence(*(whole(event.fields, name) or 0 for name in ("attempt", "restart", "bytes")))
