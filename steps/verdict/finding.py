"""Evidence with its place and time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from argosy.steps.verdict.match import Evidence


@dataclass(frozen=True)
class Finding:
    """One record that speaks for a cause."""

    evidence: Evidence
    _: KW_ONLY
    rank: int | None = None
    node: str = ""
    pod: str = ""
    time: float = 0.0
    """Seconds since 1970; 0: not known."""
    signal: int | None = None
    exit_code: int | None = None
    step: int = 0
    fact: bool = False
    """Told by the cluster, not by a process."""

    def where(self) -> str:
        """``rank 1 on node-1``."""
        who = f"rank {self.rank}" if self.rank is not None else (self.pod or "launch")
        return f"{who} on {self.node}" if self.node else who

    def line(self) -> str:
        """One line for the list of consequences."""
        return f"{self.where()}: {self.evidence.cause}: {self.evidence.quote}"
