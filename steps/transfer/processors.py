"""How many workers make sense: the processors this process may use, not those that the machine has."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 8
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_PERIOD_1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def usable() -> float:
    """Processors that the scheduler gives this process: its affinity, and the quota of its container if less."""
    return min(float(len(os.sched_getaffinity(0))), _quota())


def workers_for(uri: str, processors: float) -> int:
    """How many processes fetch from a store: one per processor, up to eight, which fill most links.

    The caller leaves a processor idle while large objects come: on two processors, two workers are 1.4 to 1.5 times
    as fast as one with large objects, and 1.2 times with small ones (make bench-stage).

    ``file://`` is bound by the disk, which one process keeps busy.
    """
    return 1 if uri.startswith("file:") else max(1, min(_MOST, int(processors)))


def _quota() -> float:
    for limit, period in ((_QUOTA, None), (_QUOTA_1, _PERIOD_1)):
        try:
            words = limit.read_text().split() + ([period.read_text().strip()] if period else [])
            if words[0] not in ("max", "-1"):
                return max(0.1, int(words[0]) / int(words[1]))
        except (OSError, ValueError, IndexError, ZeroDivisionError):
            continue
    return float("inf")
