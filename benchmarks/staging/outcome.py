"""What a contest found: a table for people, all figures for machines, and which bars were met."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.staging.clients import OURS
from benchmarks.staging.rounds import Rounds, faster, median, spread

_ROW = "{:<28} {:>9} {:>6} {:>8} {:>9} {:>10} {:>8} {:>9} {:>9}  {:<16}"
NOISY = 0.10
"""A larger spread of a client's seconds is called out: its median says little."""


@dataclass
class Outcome:
    """``bars``: (what was to hold and what was seen, whether it held)."""

    title: str
    lines: list[str]
    facts: dict[str, Any]
    bars: list[tuple[str, bool]] = field(default_factory=list)

    def text(self) -> str:
        """The table with its bars."""
        verdicts = [f"{'met   ' if held else 'MISSED'} {what}" for what, held in self.bars]
        return "\n".join([f"\n{self.title}", *self.lines, *verdicts])


def load() -> str:
    """The machine's load average now: what else it was busy with."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def speeds(
    title: str,
    rounds: Rounds,
    missing: list[str],
    *,
    count: int,
    size: int,
    bars: dict[str, float] | None = None,
) -> Outcome:
    """A table of clients: seconds, spread, CPU, start-up, rate, and against each how many times as fast ours is and
    how many times our CPU it takes."""
    per_object = size / count < 1 << 20
    unit = "obj/s" if per_object else "MiB/s"
    head = _ROW.format("", "seconds", "+-", "CPU s", "start-up", unit, "CPU/GiB", "ours is", "its CPU", "LIST/HEAD/GET")
    lines = [head]
    for name, runs in rounds.items():
        seconds, cpu = median(runs, lambda run: run.seconds), median(runs, lambda run: run.cpu)
        rate = (count if per_object else size / (1 << 20)) / seconds
        beside = name != OURS and OURS in rounds
        ratio = f"{faster(rounds, OURS, name):.2f}x" if beside else ""
        frugal = f"{cpu / median(rounds[OURS], lambda run: run.cpu):.2f}x" if beside else ""
        cells = (name, f"{seconds:.3f}", f"{100 * spread(runs):.0f} %", f"{cpu:.2f}")
        more = (f"{median(runs, lambda run: run.start_up):.2f}", f"{rate:,.0f}", f"{cpu / size * (1 << 30):.2f}")
        lines.append(_ROW.format(*cells, *more, ratio, frugal, runs[-1].requests))
    lines += [f"left out: {each}" for each in missing]
    lines += _honesty(rounds)
    found = [(f"{ours:.2f}x {name} (bar {bar}x)", ours >= bar) for name, bar, ours in _against(rounds, bars or {})]
    return Outcome(title, lines, {"rounds": as_facts(rounds), "missing": missing, "load": os.getloadavg()}, found)


def _against(rounds: Rounds, bars: dict[str, float]) -> list[tuple[str, float, float]]:
    beside = [(name, bar) for word, bar in bars.items() for name in rounds if name.startswith(word)]
    return [(name, bar, faster(rounds, OURS, name)) for name, bar in beside]


def _honesty(rounds: Rounds) -> list[str]:
    origin = [run.counted.cpu for runs in rounds.values() for run in runs]
    noisy = [name for name, runs in rounds.items() if spread(runs) > NOISY]
    told = f"origin's CPU {min(origin):.2f}..{max(origin):.2f} s a run; load average {load()}"
    warning = f"; NOISY (+- > {100 * NOISY:.0f} %): {', '.join(noisy)}" if noisy else ""
    return [f"{len(next(iter(rounds.values())))} rounds; {told}{warning}"]


def as_facts(rounds: Rounds) -> dict[str, list[dict[str, Any]]]:
    """For JSON."""
    return {name: [asdict(run) for run in runs] for name, runs in rounds.items()}
