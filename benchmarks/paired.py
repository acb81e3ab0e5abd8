"""Two or more commands timed side by side: interleaved rounds, so that a slow minute of the machine hits them all."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class BenchError(Exception):
    """A command that was to be timed failed; its last lines say why."""


@dataclass(frozen=True)
class Contender:
    """A command to time. ``before`` runs untimed before each round, to put the state back."""

    name: str
    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    codes: tuple[int, ...] = (0,)
    """Exit codes with which it has done its work: a linter ends with 1 when it finds something."""


@dataclass(frozen=True)
class Timing:
    """One execution: wall and CPU seconds (user + system, with all children that were waited for)."""

    wall: float
    cpu: float


@dataclass
class Comparison:
    """All rounds of one bench. The first contender is ours; ``bar`` is the ratio it must not pass (0: none)."""

    title: str
    bar: float
    rounds: dict[str, list[Timing]]

    @property
    def ours(self) -> str:
        """Name of the contender that the bar is for."""
        return next(iter(self.rounds))

    def median(self, name: str) -> Timing:
        """Medians of wall and CPU, each over all rounds."""
        rounds = self.rounds[name]
        return Timing(statistics.median(t.wall for t in rounds), statistics.median(t.cpu for t in rounds))

    def ratio(self, other: str) -> float:
        """Median over the rounds of ours / other within the same round, wall."""
        pairs = zip(self.rounds[self.ours], self.rounds[other], strict=True)
        return statistics.median(mine.wall / theirs.wall for mine, theirs in pairs)

    def spread(self, name: str) -> float:
        """Coefficient of variation of the wall time: standard deviation / mean."""
        walls = [timing.wall for timing in self.rounds[name]]
        return statistics.stdev(walls) / statistics.mean(walls) if len(walls) > 1 else 0.0


def compare(title: str, contenders: Sequence[Contender], *, rounds: int, bar: float = 0.0) -> Comparison:
    """Run every contender once unmeasured (caches, byte code), then ``rounds`` times in turn.

    The order turns around with each round. Raises:
        BenchError: a command exited with another code than 0.
    """
    found: dict[str, list[Timing]] = {contender.name: [] for contender in contenders}
    for number in range(rounds + 1):
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            if contender.before is not None:
                contender.before()
            timing = _timed(contender)
            if number > 0:
                found[contender.name].append(timing)
        if sys.stderr.isatty():
            print(f"  {title}: round {number} of {rounds}", file=sys.stderr, flush=True)
    return Comparison(title, bar, found)


def _timed(contender: Contender) -> Timing:
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=contender.cwd,
            env={**os.environ, **contender.env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in contender.codes:
            output.seek(0)
            tail = output.read().decode(errors="replace").splitlines()[-12:]
            raise BenchError("\n".join([f"{contender.name} exited {process.returncode}:", *tail]))
    return Timing(wall, usage.ru_utime + usage.ru_stime)
