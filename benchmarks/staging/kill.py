"""kill -9 when half of the bytes were sent, then the same command again: what it fetches, and what it leaves."""

from __future__ import annotations

import errno
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
_ROW = "{:<28} {:>12} {:>9} {:>9} {:>12} {:>12} {:>6} {:>6}"


@dataclass(frozen=True)
class Killed:
    """Bytes: ``sent`` by the origin until the kill, ``on_disk`` after it, ``again`` sent in the second run.

    Files: ``torn`` ones that the kill left under an object's own name, ``stray`` ones after the second run.
    """

    sent: int
    on_disk: int
    again: int
    torn: int
    stray: int
    total: int

    @property
    def ratio(self) -> float:
        """Bytes of the second run / bytes that were not on disk."""
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
    on_disk, torn = _written(folder), _torn(dataset, folder)
    origin.begin()
    again = measured(client, origin, dataset, folder).counted.bytes
    compare(dataset, folder, client.name)
    left = strangers(dataset, folder)
    if left and client.name == OURS:
        print(f"stray: {', '.join(left[:5])}", file=sys.stderr)
    return Killed(sent, on_disk, again, torn, len(left), total)


def _written(folder: Path) -> int:
    # Data, not lengths or blocks: a file may have been lengthened or given its room before anything was written.
    return sum(_data(path) for path in folder.rglob("*") if path.is_file())


def _data(path: Path) -> int:
    handle, end, found = os.open(path, os.O_RDONLY), path.stat().st_size, 0
    at = 0
    try:
        while at < end:
            begin = os.lseek(handle, at, os.SEEK_DATA)
            at = os.lseek(handle, begin, os.SEEK_HOLE)
            found += at - begin
    except OSError as error:
        if error.errno != errno.ENXIO:  # behind the last data
            raise
    finally:
        os.close(handle)
    return found


def _torn(dataset: Dataset, folder: Path) -> int:
    there = ((window, folder / window.key.split("/", 1)[1]) for window in dataset)
    return sum(path.is_file() and path.read_bytes() != window.bytes() for window, path in there)


def _outcome(dataset: Dataset, found: dict[str, list[Killed]]) -> Outcome:
    lines = [_ROW.format("MiB", "sent, killed", "on disk", "missing", "sent again", "/ missing", "torn", "stray")]
    for name, runs in found.items():
        sent, disk = (statistics.median(getattr(run, what) for run in runs) / (1 << 20) for what in ("sent", "on_disk"))
        again = statistics.median(run.again for run in runs) / (1 << 20)
        missing = statistics.median(run.total - run.on_disk for run in runs) / (1 << 20)
        ratio = statistics.median(run.ratio for run in runs)
        cells = (f"{sent:.0f}", f"{disk:.0f}", f"{missing:.0f}", f"{again:.0f}", f"{ratio:.2f}x")
        files = (max(run.torn for run in runs), max(run.stray for run in runs))
        lines.append(_ROW.format(name, *cells, *files))
    mine = found[OURS]
    lines.append(f"{len(mine)} rounds; load average {load()}")
    ratio, stray = max(run.ratio for run in mine), max(run.stray for run in mine)
    bars = [(f"the worst round fetched {ratio:.2f}x of what was missing (bar 1.05x)", ratio <= 1.05)]
    bars.append((f"{stray} stray files (bar 0)", stray == 0))
    facts = {name: [asdict(run) for run in runs] for name, runs in found.items()}
    return Outcome(f"kill -9 at 50 % of {dataset.count} x {dataset.largest >> 20} MiB, then again", lines, facts, bars)
