"""Several nodes on one prefix: what they ask of the store together, and how evenly they share."""

from __future__ import annotations

import shutil
import statistics
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.paired import BenchError
from benchmarks.staging import clients
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import Outcome, load
from benchmarks.staging.rounds import compare, measured


def gang(origin: Origin, dataset: Dataset, scratch: Path, *, nnodes: int, rounds: int) -> Outcome:
    """One snapshot, then ``nnodes`` processes at the same time, each its share; the union is compared byte by byte."""
    found = []
    for _ in range(rounds):
        folder = scratch / "gang"
        folder.mkdir()
        try:
            found.append(_round(origin, dataset, folder, nnodes))
        finally:
            shutil.rmtree(folder)
    last, uneven = found[-1], max(one["uneven"] for one in found)
    requests: Counter[str] = Counter(last["requests"])
    lists = requests["ListObjectsV2"] + requests["ListObjects"]
    seconds = statistics.median(one["seconds"] for one in found)
    lines = [
        f"requests together: {', '.join(f'{count} {name}' for name, count in sorted(requests.items()))}",
        f"bytes of the nodes, largest / mean: {uneven:.3f}; {seconds:.2f} s for all of them",
        f"{rounds} rounds; load average {load()}",
    ]
    bars = [
        (f"{lists} LIST (bar 1)", lists == 1),
        (f"{requests['HeadObject']} HEAD (bar 0)", not requests["HeadObject"]),
    ]
    bars.append((f"largest / mean {uneven:.3f} (bar 1.05)", uneven <= 1.05))
    return Outcome(f"{nnodes} nodes share {dataset.count} objects of 4 KiB to 8 MiB", lines, {"rounds": found}, bars)


def _round(origin: Origin, dataset: Dataset, folder: Path, nnodes: int) -> dict[str, Any]:
    manifest, nodes = folder / "manifest", [folder / str(rank) for rank in range(nnodes)]
    origin.begin()
    measured(clients.snapshot(manifest), origin, dataset, folder)
    with ThreadPoolExecutor(nnodes) as pool:
        running = [
            pool.submit(measured, clients.node(manifest, rank, nnodes), origin, dataset, node)
            for rank, node in enumerate(nodes)
        ]
        seconds = max(each.result().seconds for each in running)
    shares = [_bytes(node) for node in nodes]
    _unite(nodes, folder / "union")
    compare(dataset, folder / "union", "the gang")
    counted = origin.counted()
    uneven = max(shares) / statistics.mean(shares)
    return {"requests": counted.requests, "bytes": counted.bytes, "seconds": seconds, "uneven": uneven}


def _files(node: Path) -> list[Path]:
    return [path for path in node.rglob("*") if path.is_file() and path.relative_to(node).parts[0] != ".argosy-stage"]


def _bytes(node: Path) -> int:
    return sum(path.stat().st_size for path in _files(node))


def _unite(nodes: list[Path], union: Path) -> None:
    for node in nodes:
        for path in _files(node):
            target = union / path.relative_to(node)
            if target.exists():
                raise BenchError(f"two nodes staged {path.relative_to(node)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
