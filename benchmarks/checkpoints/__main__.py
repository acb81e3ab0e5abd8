"""``make bench-checkpoint``: what saving and resuming cost, beside the peers, with the bars of the project.

python -m benchmarks.checkpoints [--rounds 20] [--folder DIR] [--only save|resume] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.checkpoints.environment import python_with_deepspeed
from benchmarks.paired import BenchError

Rounds = dict[str, list[dict[str, float]]]
_ROW = "{:<40} {:>9} {:>9} {:>7} {:>9} {:>7}"


def main() -> int:
    """Run and print; 0 when everything ran and every bar is met."""
    parser = argparse.ArgumentParser(prog="make bench-checkpoint")
    parser.add_argument("--rounds", type=int, default=20, help="interleaved rounds (default 20)")
    parser.add_argument("--folder", type=Path, help="where to write: the disk decides half of the figures")
    parser.add_argument("--only", choices=["save", "resume"])
    parser.add_argument("--json", action="store_true", help="all rounds")
    args = parser.parse_args()
    python, deepspeed = python_with_deepspeed()
    with tempfile.TemporaryDirectory(prefix="argosy-bench-", dir=args.folder) as scratch:
        met = True
        if args.only != "resume":
            size, rounds = saves(python, Path(scratch), args.rounds, deepspeed)
            print(json.dumps(rounds) if args.json else save_table(size, rounds))
            met = all(held for _, held in save_bars(rounds))
        if args.only != "save":
            resumed = resumes(python, Path(scratch), max(5, args.rounds // 3))
            print(json.dumps(resumed) if args.json else resume_table(resumed))
            met = met and resume_bar(resumed)[1]
    return 0 if met else 1


def saves(python: str, scratch: Path, rounds: int, deepspeed: bool) -> tuple[int, Rounds]:
    """Bytes per rank and, per contender, what each round took; round 0 is its first save."""
    given = ["--rounds", str(rounds), *(["--deepspeed"] if deepspeed else [])]
    found: Rounds = defaultdict(list)
    size = 0
    for record in _torchrun(python, "benchmarks.checkpoints.ranks", [str(scratch), *given]):
        if "bytes_per_rank" in record:
            size = record["bytes_per_rank"]
        else:
            found[record["name"]].append(record)
    return size, dict(found)


def resumes(python: str, scratch: Path, rounds: int) -> Rounds:
    """Interleaved resumes, each in fresh processes."""
    found: Rounds = defaultdict(list)
    for how in ("argosy", "torch"):
        list(_torchrun(python, "benchmarks.checkpoints.resume", [how, str(scratch), "--save"]))
    for number in range(rounds + 1):
        for how in ("argosy", "torch") if number % 2 else ("torch", "argosy"):
            records = list(_torchrun(python, "benchmarks.checkpoints.resume", [how, str(scratch)]))
            if number:  # the first fills the page cache
                found[how] += records
    return dict(found)


def _torchrun(python: str, module: str, args: list[str]) -> list[dict[str, Any]]:
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", module, *args]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)} exited {done.returncode}:\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _median(records: list[dict[str, float]], key: str) -> float:
    return statistics.median(record[key] for record in records)


def _paired(rounds: Rounds, ours: str, theirs: str, key: str) -> float:
    pairs = zip(rounds[ours][1:], rounds[theirs][1:], strict=True)
    return statistics.median(mine[key] / other[key] for mine, other in pairs)


def save_bars(rounds: Rounds) -> list[tuple[str, bool]]:
    """Each bar, with the figure, and whether it is met."""
    stall = _paired(rounds, "argosy", "memcpy floor", "stall")
    first = rounds["argosy"][0]["stall"] / _median(rounds["argosy"][1:], "stall")
    durable = _paired(rounds, "argosy", "torch.save per rank + fsync + SHA-256", "durable")
    return [
        (f"stall / memcpy floor, median of the rounds' ratios: {stall:.2f}x (bar 1.15x)", stall <= 1.15),
        (f"first save's stall / steady: {first:.2f}x (bar 1.5x)", first <= 1.5),
        (f"save to committed / (torch.save + fsync + SHA-256): {durable:.2f}x (bar 1.3x)", durable <= 1.3),
    ]


def save_table(size: int, rounds: Rounds) -> str:
    """Medians over the rounds but the first."""
    count = len(rounds["argosy"]) - 1
    lines = [
        f"\nsaving {size / 1e9:.3f} GB per rank, 2 ranks, {count} interleaved rounds, seconds (slowest rank, medians)",
        _ROW.format("", "1st stall", "stall", "+-", "durable", "+-"),
    ]
    for name, records in rounds.items():
        steady = records[1:]
        spreads = [_spread(steady, key) for key in ("stall", "durable")]
        figures = [records[0]["stall"], _median(steady, "stall"), _median(steady, "durable")]
        cells = [f"{figures[0]:.3f}", f"{figures[1]:.3f}", spreads[0], f"{figures[2]:.3f}", spreads[1]]
        lines.append(_ROW.format(name, *cells))
    return "\n".join([*lines, *(f"{'met   ' if held else 'MISSED'} {text}" for text, held in save_bars(rounds))])


def _spread(records: list[dict[str, float]], key: str) -> str:
    values = [record[key] for record in records]
    return f"{100 * statistics.stdev(values) / statistics.mean(values):.0f} %"


def resume_bar(rounds: Rounds) -> tuple[str, bool]:
    """The bar of resuming."""
    pairs = zip(rounds["argosy"], rounds["torch"], strict=True)
    ratio = statistics.median(mine["resume"] / other["resume"] for mine, other in pairs)
    return f"resume / (import torch + torch.load + SHA-256): {ratio:.2f}x (bar 1.15x)", ratio <= 1.15


def resume_table(rounds: Rounds) -> str:
    """Medians."""
    lines = [f"\nresuming the same bytes in fresh processes, {len(rounds['argosy'])} rounds each, seconds"]
    for name, records in rounds.items():
        resume, load = _median(records, "resume"), _median(records, "load")
        lines.append(f"{name:<40} import + load {resume:.3f} (+- {_spread(records, 'resume')}), load {load:.3f}")
    text, held = resume_bar(rounds)
    return "\n".join([*lines, f"{'met   ' if held else 'MISSED'} {text}"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"argosy: bench: {error}", file=sys.stderr)
        sys.exit(1)
