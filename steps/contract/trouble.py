"""What went wrong, as one part of a run tells another."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.steps.contract.message import Message

ASKED_FOR_STACKS = "argosy: hang: no rank made a step; the SIGABRT that follows is argosy's, to print the stacks"
"""In a rank's log: without it "Fatal Python error: Aborted" reads as a crash of its own."""

DISK_IS_FULL = "argosy: the disk is full that holds "
"""In the log of a rank whose own words say that one is, and not which."""


@dataclass(frozen=True, kw_only=True)
class Trouble(Message):
    """A fault by its cause's name. What is not known is left out."""

    cause: str
    """An id of the closed list; a newer pod may name one that is unknown here."""
    message: str = ""
    quote: str = ""
    """The line it rests on."""
    code: int | None = None
    """The exit code, where it is not the cause's own."""
    pod: str = ""
    node: str = ""
    rank: int | None = None
    time: float = 0.0
    """Seconds since 1970; 0: not known."""
    step: int = 0
    digest: str = ""
    """The checkpoint that was found damaged."""
