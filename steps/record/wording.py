"""Quantities as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def size(count: float) -> str:
    """``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def duration(seconds: float) -> str:
    """``0.042 s``, ``42.0 s``, ``3 min 20 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if seconds < 0.0995:
        return f"{seconds:.3f} s" if seconds > 0 else "0 s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def short(digest: str) -> str:
    """The first 12 hex digits, as people compare them."""
    return digest.removeprefix("sha256:")[:12]


def called(workflow: str, run_id: str | None) -> str:
    """A run by its workflow's name, and by the run id where that was given: several may go on under one."""
    return workflow if not run_id or run_id == workflow else f"{workflow} (run id {run_id})"


def percent(ratio: float) -> str:
    """``93.4%``; never rounded up to 100."""
    return "100%" if ratio >= 1 else f"{min(99.9, ratio * 100):.1f}%"


def figure(value: float) -> str:
    """Six significant digits at most."""
    return f"{value:.6g}"


def count(number: int, noun: str) -> str:
    """``1 step``, ``2 steps``, ``3 losses``."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}".replace(",", " ")


def clock(moment: float) -> str:
    """``2026-11-21 17:26:34 UTC``."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
