"""One start of the agents and its points. Times are seconds since 1970; a fact that is not known is None or empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Point:
    """One optimizer step as one rank reported it."""

    time: float
    step: int
    loss: float | None
    tokens_per_second: float | None


@dataclass(frozen=True)
class Restart:
    """One start of the agents inside a gang, from the restored checkpoint to the first failure or the end."""

    attempt: int
    """Number of the gang."""
    restart: int
    began: float
    ended: float | None
    restored_step: int
    """0: from scratch."""
    restored_digest: str
    skipped: tuple[str, ...]
    """Digests of newer checkpoints that were passed over, because they are quarantined."""
    cause: str
    """Id of the closed list; empty while it runs, or when every rank ended well."""
    signal: int | None
    exit_code: int | None
    rank: int | None
    node: str
    quote: str
    """The line of evidence; may be empty."""
    last_step: int
    points: tuple[Point, ...]
    """Progress of the lowest rank that reports, by step."""

    @property
    def failed(self) -> bool:
        """Whether it ended for a cause."""
        return bool(self.cause)

    stopped: bool = False
    """Whether it ended because the training was to stop, by Ctrl-C or ``argosy stop``, which is no failure."""
    cut_off: bool = False
    """Whether the run was over before anybody wrote down how it ended."""
    grown: int = 0
    """With so many nodes, which were more, it was to go on; nothing else ended it. 0: no."""
    restored_at: float | None = None
    """When what it restored was committed; None: that was not seen."""
    restored_told: int | None = None
    """What the script had told by then, in its own count; None: it counts anew in each process, or is not known."""
    saved_told: int | None = None
    """What it had told, in its own count, when the newest checkpoint of this restart was saved; None: there is none."""

    @cached_property  # a report asks once for each of a million points
    def began_again(self) -> tuple[int, int] | None:
        """The steps it first reported, when two in a row lie before what it restored: it did not use what it got.

        One alone proves nothing: a progress bar is drawn before it knows where it resumes.
        """
        first = [point.step for point in sorted(self.points, key=lambda point: point.time)[:2]]
        if self.restored_told is None or len(first) < 2:
            return None
        return (first[0], first[1]) if first[0] < first[1] < self.restored_told else None

    @property
    def from_zero(self) -> bool:
        """Whether it calls its first step 0."""
        return bool(self.points) and self.points[0].step == 0

    @property
    def base(self) -> int:
        """The step before its first one, in the count of its own points: -1 where the first is called 0."""
        if self.began_again is not None:
            first, second = self.began_again  # it may tell each tenth only, from 1 on too
            return max(0 if first else -1, 2 * first - second)
        if self.restored_told is not None:
            return -1 if self.from_zero and not self.restored_digest else self.restored_told
        return self.points[0].step - 1 if self.points and self.restored_at is not None else self.restored_step
