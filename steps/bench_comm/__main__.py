"""``python -m argosy.steps.bench_comm``: the training script of ``argosy bench-comm``, once in each rank of the gang.

Rank 0 prints a line for each collective and size, and leaves ``result.json`` and ``result.svg``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from argosy.steps import progress
from argosy.steps.bench_comm.collectives import FACTORS, HEAD, Row, line, row, size_text
from argosy.steps.bench_comm.plot import svg

AIM_SECONDS = 0.3
"""Of one size's repetitions together; at least :data:`FEWEST`, at most :data:`MOST`."""
FEWEST, MOST, WARM = 5, 200, 2
LARGEST = {"cpu": 1 << 26, "cuda": 1 << 30}
FOLDER = "bench-comm"


class Sweep:
    """The group of this rank, and its buffers."""

    def __init__(self, seconds: float) -> None:
        self.kind = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = (
            torch.device(self.kind, int(os.environ["LOCAL_RANK"])) if self.kind == "cuda" else torch.device("cpu")
        )
        if self.kind == "cuda":
            torch.cuda.set_device(self.device)
        dist.init_process_group("nccl" if self.kind == "cuda" else "gloo")
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self._ends = time.monotonic() + seconds

    def measured(self, op: str, size: int) -> list[float]:
        """Seconds of each repetition, of the slowest rank; empty: the time is spent. Collective."""
        act = self._act(op, size)
        first = self._timed(act, WARM)
        # The slowest of the warm ones, so that nobody stops alone.
        times = self._agreed(min(MOST, max(FEWEST, int(AIM_SECONDS / max(max(first), 1e-6)))))
        if self._agreed(int(time.monotonic() + times * max(first) > self._ends)):
            return []
        found = torch.tensor(self._timed(act, times), dtype=torch.float64, device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return [float(each) for each in found.cpu()]

    def _agreed(self, number: int) -> int:
        """What rank 0 says."""
        told = torch.tensor([number], dtype=torch.int64, device=self.device)
        dist.broadcast(told, 0)
        return int(told.item())

    def _timed(self, act: Callable[[], object], times: int) -> list[float]:
        found = []
        for _ in range(times):
            dist.barrier()
            began = time.perf_counter()
            act()
            if self.kind == "cuda":
                torch.cuda.synchronize()
            found.append(time.perf_counter() - began)
        return found

    def _act(self, op: str, size: int) -> Callable[[], object]:
        whole = self._buffer(size)
        part = self._buffer(size // self.ranks)
        acts: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: dist.all_reduce(whole, op=dist.ReduceOp.MAX),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "broadcast": lambda: dist.broadcast(whole, 0),
        }
        return acts[op]

    def _buffer(self, size: int) -> torch.Tensor:
        return torch.ones(max(1, size // 4), dtype=torch.float32, device=self.device)


def sizes(low: int, high: int, factor: int, ranks: int) -> list[int]:
    """From ``low`` to ``high``, each such that every rank has as many whole numbers."""
    unit = 4 * ranks
    found = []
    while low <= high:
        found.append(max(unit, low // unit * unit))
        low *= factor
    return list(dict.fromkeys(found))


def main() -> None:
    """Measure, print, and leave the result."""
    parser = argparse.ArgumentParser(prog="python -m argosy.steps.bench_comm", description=__doc__)
    parser.add_argument("--op", action="append", choices=[*FACTORS], required=True)
    parser.add_argument("--min-bytes", type=int, required=True)
    parser.add_argument("--max-bytes", type=int, default=0, help="0: 64 MiB on CPUs, 1 GiB on GPUs")
    parser.add_argument("--factor", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    args = parser.parse_args()
    sweep = Sweep(args.seconds)
    rows, stopped = _rows(sweep, args)
    dist.destroy_process_group()
    if sweep.rank == 0:
        _leave(sweep, rows, stopped)


def _rows(sweep: Sweep, args: argparse.Namespace) -> tuple[list[Row], str]:
    every = sizes(args.min_bytes, args.max_bytes or LARGEST[sweep.kind], args.factor, sweep.ranks)
    rows: list[Row] = []
    if sweep.rank == 0:
        print(HEAD, flush=True)
    for size in every:
        for op in args.op:
            seconds = sweep.measured(op, size)
            if not seconds:
                return (
                    rows,
                    f"{op} of {size_text(size)} would have taken longer than the {args.seconds:g} s that were given",
                )
            rows.append(row(op, size, sweep.ranks, seconds))
            if sweep.rank == 0:
                print(line(rows[-1]), flush=True)
            progress.report(len(rows), end_step=len(every) * len(args.op))
    return rows, ""


def _nccl() -> str:
    return ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]


def _leave(sweep: Sweep, rows: list[Row], stopped: str) -> None:
    nodes = sweep.ranks // int(os.environ["LOCAL_WORLD_SIZE"])
    backend = "NCCL" if sweep.kind == "cuda" else "gloo"
    found: dict[str, Any] = {
        "ranks": sweep.ranks,
        "nodes": nodes,
        "backend": backend,
        "torch": torch.__version__,
        "nccl": _nccl() if sweep.kind == "cuda" else "",
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("NCCL_")},
        "stopped": stopped,
        "rows": [each.as_json() for each in rows],
    }
    if stopped:
        print(f"argosy: {stopped}", flush=True)
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    if rows:
        title = f"{sweep.ranks} ranks on {nodes} {'node' if nodes == 1 else 'nodes'}, {backend}"
        (folder / "result.svg").write_text(svg(rows, title))
    part = folder / "result.part"
    part.write_text(json.dumps(found, indent=2))
    part.replace(folder / "result.json")


if __name__ == "__main__":
    main()
