"""Waiting for somebody else, aloud: whom for is said at once and then now and then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

POLL_SECONDS = 0.1
SAY_AGAIN_SECONDS = 30.0


def _say(text: str) -> None:
    print(f"argosy: {text}", flush=True)


def _go_on() -> None:
    return


@dataclass
class Waiting:
    """``go_on`` is called at each look and may raise to give up; ``say`` gets a line for people."""

    go_on: Callable[[], None] = _go_on
    say: Callable[[str], None] = _say
    _topic: str = field(default="", init=False)
    _say_at: float = field(default=0.0, init=False)

    def pause(self, topic: str, text: str, *, after: float = 0.0) -> None:
        """One look's pause; ``text`` is said ``after`` so many seconds with the same ``topic``, then now and then."""
        self.go_on()
        now = time.monotonic()
        if topic != self._topic:
            self._topic, self._say_at = topic, now + after
        if now >= self._say_at:
            self._say_at = now + SAY_AGAIN_SECONDS
            self.say(text)
        # Jitter: two that withdrew for each other must not meet again and again.
        time.sleep(random.uniform(0.5, 1.5) * POLL_SECONDS)
