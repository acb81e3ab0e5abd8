"""A fault that was made on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.steps.record.reading import text, whole
from argosy.steps.runlog import Event


@dataclass(frozen=True)
class Injected:
    """A fault that ``--inject`` caused."""

    time: float
    fault: str
    rank: int | None
    node: str
    step: int | None
    """The last that was told before it, by its rank or, where that tells none, by the gang."""
    asked: str
    """As ``--inject`` had it."""

    @property
    def words(self) -> str:
        """``kill (rank 1, after step 47)``; one that goes by time or phase may come before any step."""
        where = [f"rank {self.rank}"] if self.rank is not None else []
        where += [self.node] if self.node else []
        where += [f"after step {self.step}"] if self.step else []
        return f"{self.fault} ({', '.join(where)})" if where else self.fault


def injected_of(event: Event) -> Injected:
    """As an event tells it."""
    fault, node, asked = (text(event.fields, name) for name in ("fault", "node", "asked"))
    return Injected(event.time, fault, whole(event.fields, "rank"), node, whole(event.fields, "step"), asked)
