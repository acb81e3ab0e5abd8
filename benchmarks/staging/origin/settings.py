"""How the origin behaves, and what it counted since it was last told."""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Settings:
    """``latency`` seconds before each answer's first byte, ``rate`` bytes/s of each connection (0: no limit),
    ``refuse``: share of GetObject answered 503, ``crc``: 1 when the store's checksum is told to those who ask."""

    latency: float = 0.0
    rate: float = 0.0
    refuse: float = 0.0
    crc: float = 1.0


@dataclass
class Counters:
    """Since the last ``/-/set``; ``first`` is the time (CLOCK_MONOTONIC) of the first request of each kind."""

    requests: Counter[str] = field(default_factory=Counter)
    first: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    connections: int = 0
    began_cpu: float = field(default_factory=lambda: _cpu())

    def count(self, operation: str) -> None:
        """One request."""
        if operation not in self.first:
            self.first[operation] = time.monotonic()
        self.requests[operation] += 1

    def to_json(self) -> bytes:
        """Everything, and the CPU seconds of the origin itself."""
        told = {"requests": self.requests, "first": self.first, "bytes": self.sent, "connections": self.connections}
        return json.dumps({**told, "cpu": _cpu() - self.began_cpu}).encode()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
