"""What streaming did and what it cost the step, for a script to print and for the run's log."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, replace

from argosy.steps.progress import streamed

TELL_SECONDS = 10.0


@dataclass(frozen=True)
class StreamStatistics:
    """Since the dataset was opened in this process."""

    fetched_bytes: int = 0
    """What came from the store: whole blocks, and what was fetched twice."""
    bytes: int = 0
    """What samples asked for."""
    requests: int = 0
    refetched: int = 0
    """Requests made again because their bytes were wrong."""
    waited_seconds: float = 0.0
    """From asking for samples until they were there, decoded; with workers, until a batch of theirs was there."""

    def __str__(self) -> str:
        return (
            f"waited {self.waited_seconds:.1f} s for data: {self.bytes / 1e6:.1f} MB of samples, "
            f"{self.fetched_bytes / 1e6:.1f} MB fetched in {self.requests} requests, {self.refetched} of them again"
        )


class Counters:
    """Adds up from any thread; each :data:`TELL_SECONDS` the run's log gets what was added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self._told = StreamStatistics()
        self._due = time.monotonic() + TELL_SECONDS

    @property
    def now(self) -> StreamStatistics:
        """The figures so far."""
        with self._lock:
            return self._now

    def add(
        self, *, fetched_bytes: int = 0, bytes: int = 0, requests: int = 0, refetched: int = 0, waited: float = 0.0
    ) -> None:
        """Count something."""
        with self._lock:
            now = self._now
            self._now = StreamStatistics(
                fetched_bytes=now.fetched_bytes + fetched_bytes,
                bytes=now.bytes + bytes,
                requests=now.requests + requests,
                refetched=now.refetched + refetched,
                waited_seconds=now.waited_seconds + waited,
            )

    def tell(self, *, last: bool = False) -> None:
        """Send what was added since it was last sent, if it is time or the end."""
        with self._lock:
            if not last and time.monotonic() < self._due:
                return
            self._due = time.monotonic() + TELL_SECONDS
            now, told = asdict(self._now), asdict(self._told)
            self._told = replace(self._now)
        added = {name: round(value - told[name], 3) for name, value in now.items()}
        if any(added.values()):
            streamed(**added)
