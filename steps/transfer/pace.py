"""How many requests at a time: more while that brings more, fewer when the store says it is too much.

Few bytes per request: as many at a time as this process can handle in the time that an answer takes. Many bytes: more
as long as that brings more per second. Nothing is added while this process itself is what is waited for.
"""

from __future__ import annotations

FIRST = 32
LEAST = 2
MOST = 512
_SMALL = 1 << 20
"""Objects below this are bound by latency, not by the link."""
_REQUEST_WORK = 64 << 10
"""A request counts as much as these bytes: about what both cost."""
_REQUESTS_PER_SECOND = 16_000
"""What one process can handle at best; more at a time than that times the latency only queue."""
_BETTER = 1.1
_IDLE_SHARE = 0.1
_WINDOW_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 5.0


class Pace:
    """``limit`` is how many requests may be under way now. All times in seconds on one clock."""

    def __init__(self, now: float, most: int = MOST) -> None:
        """``most``: never more than this."""
        self._most = most
        self.limit = min(FIRST, most)
        self._began = now
        self._answers, self._bytes, self._slept = 0, 0, 0.0
        self._latency = 0.0
        self._rate_before, self._limit_before = 0.0, 0
        self._settled = 0.0
        self._throttled = -_WINDOW_SECONDS

    def slept(self, seconds: float) -> None:
        """Take note that nothing was to do for so long."""
        self._slept += seconds

    def answered(self, length: int, latency: float, now: float) -> None:
        """A request is done: its bytes, and how long its first byte took."""
        self._answers += 1
        self._bytes += length
        # The shortest of late: what the way takes, without the queues that we make ourselves.
        self._latency = min(latency, self._latency * 1.001) if self._latency else latency
        elapsed = now - self._began
        if self._answers >= self.limit or elapsed > _WINDOW_SECONDS:
            self._judge(elapsed, now)
            self._began, self._answers, self._bytes, self._slept = now, 0, 0, 0.0

    def throttled(self, now: float) -> bool:
        """The store asked for less; False when it said so a moment ago and was heeded already."""
        if now - self._throttled < max(0.1, 2 * self._latency):
            return False
        self._throttled = self._settled = now
        self.limit = max(LEAST, self.limit * 7 // 10)
        self._rate_before = 0.0
        return True

    def _judge(self, elapsed: float, now: float) -> None:
        if now - self._throttled < _LOOK_AGAIN_SECONDS:
            # One more per round: what was too much a moment ago is not tried again at once.
            self.limit = min(self._most, self.limit + max(1, self.limit // 16))
        elif self._slept <= _IDLE_SHARE * elapsed:
            # This process is busy: more requests would only wait for it.
            self._rate_before = 0.0
        elif self._bytes < self._answers * _SMALL:
            self._rate_before = 0.0
            useful = min(self._most, int(self._latency * _REQUESTS_PER_SECOND))
            self.limit = max(self.limit, min(self.limit * 2, useful))
        else:
            self._try_more((self._bytes + self._answers * _REQUEST_WORK) / max(elapsed, 1e-6), now)

    def _try_more(self, rate: float, now: float) -> None:
        """Large ones: what is more than the link takes only waits in it."""
        if self._rate_before and rate < _BETTER * self._rate_before:
            # The step up brought nothing: back, and stay for a while.
            self.limit, self._rate_before, self._settled = max(LEAST, self._limit_before), 0.0, now
        elif self._rate_before or now - self._settled > _LOOK_AGAIN_SECONDS:
            self._rate_before, self._limit_before = rate, self.limit
            self.limit = min(self._most, self.limit * 2)
