"""How much memory a pod can still have."""

from __future__ import annotations

import contextlib
from pathlib import Path


def available_bytes() -> int:
    """Memory that can still be had: of the machine, and of this pod where it has a limit."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(fields.get("MemAvailable", "0 kB").split()[0]) << 10
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = (group / "memory.max").read_text().strip()
        if limit != "max":
            used = int((group / "memory.current").read_text())
            kept = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            free = min(free, int(limit) - used + int(kept.get("inactive_file", 0)))
    return free
