"""What a gang's GPUs wait for when every node's folder is full already: manifest, share, a look at the files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.staging import clients
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import Outcome, as_facts, load
from benchmarks.staging.rounds import Rounds, Run, measured, median, spread

BAR_SECONDS = 1.0


def warm(origin: Origin, dataset: Dataset, scratch: Path, *, nnodes: int, rounds: int) -> Outcome:
    """The nodes stage once, then again and again into what they have, all at the same time.

    With local files a gang would begin at once, so what is measured is the whole difference. A node of a gang has its
    interpreter already: with it, as counted for the bar, the figure is an upper bound.
    """
    manifest = scratch / "manifest"
    origin.begin()
    measured(clients.snapshot(manifest), origin, dataset, scratch)
    nodes = [clients.node(manifest, rank, nnodes) for rank in range(nnodes)]
    found: Rounds = {node.name: [] for node in nodes}
    for number in range(rounds + 1):
        origin.begin()
        with ThreadPoolExecutor(nnodes) as pool:
            running = {
                node.name: pool.submit(measured, node, origin, dataset, scratch / node.name.replace(" ", "-"))
                for node in nodes
            }
            runs = {name: each.result() for name, each in running.items()}
        for name, run in runs.items():
            if number:  # the first one filled the folder
                found[name].append(run)
    return _outcome(f"{nnodes} nodes whose folders are full, {dataset.count:,} objects in all", found)


def _outcome(title: str, found: Rounds) -> Outcome:
    worst = max(found, key=lambda name: median(found[name], _waited))
    runs = found[worst]
    work, before = median(runs, lambda run: run.seconds), median(runs, lambda run: run.start_up)
    asked = sum(runs[-1].counted.requests.values())
    spread_of = f"+- {100 * spread(runs):.0f} %"
    lines = [
        f"the slower node: {work:.3f} s ({spread_of}) after interpreter and imports, {before:.2f} s",
        f"{asked} requests to the data's store; {len(runs)} rounds; load average {load()}",
    ]
    waited = median(runs, _waited)
    bars = [
        (f"training begins {waited:.2f} s later than with local files (bar {BAR_SECONDS} s)", waited <= BAR_SECONDS)
    ]
    return Outcome(title, lines, {"rounds": as_facts(found)}, bars)


def _waited(run: Run) -> float:
    return run.seconds + run.start_up
