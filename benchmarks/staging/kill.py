"""kill -9 when half of the bytes were sent, then the same command again: what it fetches, and what it leaves."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.paired import BenchError
from benchmarks.staging.clients import OURS, Client
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import Outcome, load
from benchmarks.staging.rounds import compare, measured, strangers

RATE = 25 << 20
"""Bytes/s of each connection in the first run: slow enough that half is reached neither at once nor over all files."""
_LOOK = 0.003
_ROW = "{:<28} {:>12} {:>12} {:>12} {:>12} {:>11} {:>7}"


@dataclass(frozen=True)
class Killed:
    """Bytes: ``sent`` by the origin until the kill, ``on_disk`` after it, ``again`` sent in the second run."""

    sent: int
    on_disk: int
    again: int
    stray: int
    total: int

    @property
    def ratio(self) -> float:
        """Bytes of the second run / bytes that were missing on disk."""
        return self.again / max(1, self.total - self.on_disk)


def kill(origin: Origin, dataset: Dataset, clients: Sequence[Client], scratch: Path, rounds: int) -> Outcome:
    """Each client in turn, ``rounds`` times; every byte is compared at the end of each."""
    found: dict[str, list[Killed]] = {client.name: [] for client in clients}
    for number in range(rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            folder = scratch / "into"
            folder.mkdir()
            try:
                found[client.name].append(_killed(origin, dataset, client, folder))
            finally:
                shutil.rmtree(folder)
    return _outcome(dataset, found)


def _killed(origin: Origin, dataset: Dataset, client: Client, folder: Path) -> Killed:
    total = dataset.total_bytes
    origin.begin(rate=RATE)
    process = subprocess.Popen(
        client.command(dataset.name, folder),
        env={**origin.environment(), **client.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while origin.counted().bytes < total // 2 and process.poll() is None:
        time.sleep(_LOOK)
    if process.poll() is not None:
        raise BenchError(f"{client.name} ended before half of the bytes were sent: exit {process.returncode}")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    sent = origin.counted().bytes
    on_disk = _allocated(folder)
    origin.begin()
    again = measured(client, origin, dataset, folder).counted.bytes
    compare(dataset, folder, client.name)
    left = strangers(dataset, folder)
    if left and client.name == OURS:
        print(f"stray: {', '.join(left[:5])}", file=sys.stderr)
    return Killed(sent, on_disk, again, len(left), total)


def _allocated(folder: Path) -> int:
    # Blocks, not lengths: a file whose end was written first is not full.
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _outcome(dataset: Dataset, found: dict[str, list[Killed]]) -> Outcome:
    lines = [_ROW.format("MiB", "sent, killed", "on disk", "missing", "sent, again", "again/miss.", "stray")]
    for name, runs in found.items():
        sent, disk = (statistics.median(getattr(run, what) for run in runs) / (1 << 20) for what in ("sent", "on_disk"))
        again = statistics.median(run.again for run in runs) / (1 << 20)
        missing = statistics.median(run.total - run.on_disk for run in runs) / (1 << 20)
        ratio = statistics.median(run.ratio for run in runs)
        cells = (f"{sent:.0f}", f"{disk:.0f}", f"{missing:.0f}", f"{again:.0f}", f"{ratio:.2f}x")
        lines.append(_ROW.format(name, *cells, max(run.stray for run in runs)))
    mine = found[OURS]
    lines.append(f"{len(mine)} rounds; load average {load()}")
    ratio, stray = max(run.ratio for run in mine), max(run.stray for run in mine)
    bars = [(f"the worst round fetched {ratio:.2f}x of what was missing (bar 1.05x)", ratio <= 1.05)]
    bars.append((f"{stray} stray files (bar 0)", stray == 0))
    facts = {name: [asdict(run) for run in runs] for name, runs in found.items()}
    return Outcome(f"kill -9 at 50 % of {dataset.count} x {dataset.largest >> 20} MiB, then again", lines, facts, bars)
