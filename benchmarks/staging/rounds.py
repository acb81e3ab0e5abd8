"""Clients that stage the same data set in turn, round by round, and what each run cost."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paired import BenchError
from benchmarks.staging.clients import OURS, Client
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Counted, Origin

LONGEST = 900
"""Seconds after which a client that still runs has failed."""


@dataclass(frozen=True)
class Run:
    """One run. ``seconds``: from the first LIST the origin saw (of a client that lists nothing: from its own word)
    to the last publish; ``start_up``: what came before; ``cpu``: of the client with all its children."""

    seconds: float
    start_up: float
    cpu: float
    counted: Counted

    @property
    def requests(self) -> str:
        """``LIST/HEAD/GET``."""
        seen = self.counted.requests
        return f"{self.counted.lists}/{seen.get('HeadObject', 0)}/{seen.get('GetObject', 0)}"


Rounds = dict[str, list[Run]]


def measured(client: Client, origin: Origin, dataset: Dataset, folder: Path) -> Run:
    """Run it once; ``origin`` has been told how to behave.

    Raises:
        BenchError: it failed.
    """
    command = ["timeout", "--signal=KILL", str(LONGEST), *client.command(dataset.name, folder)]
    with tempfile.TemporaryFile() as output:
        spawned = time.monotonic()
        process = subprocess.Popen(
            command,
            env={**origin.environment(), **client.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
    if process.returncode != 0:
        raise BenchError("\n".join([f"{client.name} exited {process.returncode}:", *lines[-12:]]))
    counted = origin.counted()
    told = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    began = counted.first_list or told.get("began", spawned)
    return Run(told.get("finished", ended) - began, began - spawned, usage.ru_utime + usage.ru_stime, counted)


def interleaved(
    clients: Sequence[Client],
    dataset: Dataset,
    rounds: int,
    run: Callable[[Client], Run],
    missing: list[str],
    *,
    warm: bool = True,
) -> Rounds:
    """Every client once unmeasured (``warm``), then ``rounds`` times in turn, in an order that turns around.

    A peer that fails when it is not measured yet is left out, and its words are added to ``missing``.
    """
    found: Rounds = {client.name: [] for client in clients}
    for number in range(1 - warm, rounds + 1):
        for client in clients if number % 2 == 0 else reversed(clients):
            if client.name not in found:
                continue
            try:
                one = run(client)
            except BenchError as error:
                if len(found[client.name]) or client.name == OURS:
                    raise
                missing.append(str(error))
                del found[client.name]
                continue
            if number:
                found[client.name].append(one)
            if sys.stderr.isatty():
                print(f"  {dataset.name}: round {number} of {rounds}, {client.name}", file=sys.stderr, flush=True)
    return found


def fetched_anew(origin: Origin, dataset: Dataset, scratch: Path, **conditions: float) -> Callable[[Client], Run]:
    """A runner: each run fills an empty folder, which is compared with the data set and removed."""

    def run(client: Client) -> Run:
        folder = scratch / "into"
        folder.mkdir()
        origin.begin(**conditions)  # type: ignore[arg-type]
        try:
            one = measured(client, origin, dataset, folder)
            if not client.name.startswith("bare"):
                compare(dataset, folder, client.name)
        finally:
            shutil.rmtree(folder)
        return one

    return run


def compare(dataset: Dataset, folder: Path, name: str) -> None:
    """Every byte that was to come, did.

    Raises:
        BenchError: a file is missing or is another.
    """
    for window in dataset:
        path = folder / window.key.split("/", 1)[1]
        if not path.is_file() or path.stat().st_size != window.size or path.read_bytes() != window.bytes():
            raise BenchError(f"{name}: {path} is not what the origin has")


def fill(dataset: Dataset, folder: Path) -> None:
    """What a finished copy leaves, written by ourselves: some peers take minutes for it."""
    for window in dataset:
        path = folder / window.key.split("/", 1)[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(window.bytes())


def strangers(dataset: Dataset, folder: Path) -> list[str]:
    """Files that are no object of the data set, and not argosy's own small state."""
    keys = {window.key.split("/", 1)[1] for window in dataset}
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    own = {name for name in found if name.startswith(".argosy-stage/") and not name.startswith(".argosy-stage/parts/")}
    return sorted(found - keys - own)


def median(runs: Sequence[Run], of: Callable[[Run], float]) -> float:
    """Over the rounds."""
    return statistics.median(of(run) for run in runs)


def spread(runs: Sequence[Run]) -> float:
    """Coefficient of variation of the seconds."""
    seconds = [run.seconds for run in runs]
    return statistics.stdev(seconds) / statistics.mean(seconds) if len(seconds) > 1 else 0.0


def faster(rounds: Rounds, mine: str, other: str) -> float:
    """How many times as fast as the other: median over the rounds of theirs / mine within the same round."""
    pairs = zip(rounds[mine], rounds[other], strict=True)
    return statistics.median(theirs.seconds / ours.seconds for ours, theirs in pairs)
