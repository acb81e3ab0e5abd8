"""Lines that say what happens and after how many seconds, and waiting that ends with a reason."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

STARTED = time.monotonic()


class ClusterError(Exception):
    """What could not be started or reached, and where to look."""


def say(text: str) -> None:
    """One line on stderr, with the seconds since this program started."""
    print(f"cluster {time.monotonic() - STARTED:6.1f} s  {text}", file=sys.stderr, flush=True)


def wait_for(what: str, ready: Callable[[], bool], seconds: float, hint: str = "", every: float = 0.1) -> None:
    """Ask until it is so. Raises ClusterError after ``seconds``, with ``hint`` telling where to look."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not after {seconds:g} s{'; ' + hint if hint else ''}")
        time.sleep(every)
