"""A checkpoint as the run's record knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommittedCheckpoint:
    """One entry of the commit log."""

    time: float
    step: int
    digest: str
    bytes: int
    seconds: float | None
    generation: int | None
    final: bool
    restored: bool
    """Some restart began from it."""
    step_from: str = ""
    """What told its step: the name of its files, what is in them (``file``), what the script printed, or a mere count;
    "": the script itself, by Checkpointer."""
    told: int | None = None
    """What the script had told by then, in its own count."""
    set_aside: str = ""
    """Why nobody is to resume from it; "" for one that can be."""

    @property
    def counts_otherwise(self) -> bool:
        """Whether it ends a run at a step that its files say, in another count than the script's words."""
        return self.final and self.step_from in ("name", "file") and self.told is not None and self.told != self.step
