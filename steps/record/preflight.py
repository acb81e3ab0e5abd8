"""What was found of a gang before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.steps.record.reading import text, texts
from argosy.steps.runlog import Event


@dataclass(frozen=True)
class Preflight:
    """The newest one of a run."""

    summary: str
    flaws: tuple[str, ...]
    """What is wrong, the worst first."""
    enforced: bool
    """A flaw ended that start of the gang."""

    @property
    def sentence(self) -> str:
        """The worst flaw, or that there is none and what was measured."""
        return f"warning: {self.flaws[0]}" if self.flaws else self.summary


def preflight_of(event: Event) -> Preflight:
    """Read one event."""
    fields = event.fields
    return Preflight(text(fields, "summary"), tuple(texts(fields, "flaws")), bool(fields.get("enforced")))


def latest_preflight(events: Sequence[Event]) -> Preflight | None:
    """``events`` sorted by time; None: there was none."""
    return next((preflight_of(event) for event in reversed(events) if event.kind == "preflight"), None)
