"""The collectives, and what their times mean, by the definitions of NVIDIA's nccl-tests.

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

FACTORS: Mapping[str, Callable[[int], float]] = {
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda ranks: 1.0,
}
"""Bus bandwidth of algorithm bandwidth: what the slowest link carries, whatever the number of ranks."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One collective of one size. Bandwidths are of the median, GB/s (10^9 bytes)."""

    op: str
    bytes: int
    """Of the whole message: all_gather's output, reduce_scatter's input."""
    times: int
    min_us: float
    median_us: float
    p99_us: float
    algbw: float
    busbw: float

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def row(op: str, size: int, ranks: int, seconds: list[float]) -> Row:
    """``seconds`` of every repetition, of the slowest rank in each."""
    ordered = sorted(seconds)
    median = ordered[len(ordered) // 2]
    algbw = size / median / 1e9
    return Row(
        op=op,
        bytes=size,
        times=len(ordered),
        min_us=round(ordered[0] * 1e6, 1),
        median_us=round(median * 1e6, 1),
        p99_us=round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e6, 1),
        algbw=algbw,
        busbw=algbw * FACTORS[op](ranks),
    )


def size_text(size: int) -> str:
    """``64 KiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1023:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


_TIMES = "".join(f"{name:>12}" for name in ("min us", "median us", "p99 us"))
HEAD = f"{'collective':<16}{'size':>9}{'times':>7}{_TIMES}{'algbw':>9}{'busbw GB/s':>12}"


def line(found: Row) -> str:
    """The row of the table under :data:`HEAD`."""
    times = "".join(f"{each:>12.1f}" for each in (found.min_us, found.median_us, found.p99_us))
    return f"{found.op:<16}{size_text(found.bytes):>9}{found.times:>7}{times}{found.algbw:>9.3f}{found.busbw:>12.3f}"
