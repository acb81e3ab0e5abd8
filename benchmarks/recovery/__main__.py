"""``make bench-recovery``: how long a training stands still after a fault, with the bars of the project.

python -m benchmarks.recovery [--rounds 5] [--step 0.05] [--only NAME ...] [--folder DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.paired import BenchError
from benchmarks.recovery.trials import Outcome, Shape, hung, in_place, lost_node, torchrun

Trial = Callable[[Path, float], Outcome]
TRIALS: dict[str, Trial] = {
    "torchrun": torchrun,
    "torchrun-2": lambda folder, step: torchrun(folder, step, nnodes=2),
    "sigkill": lambda folder, step: in_place(folder, step, Shape(1, 2)),
    "preloaded": lambda folder, step: in_place(folder, step, Shape(1, 2, preload=True)),
    "sigkill-2": lambda folder, step: in_place(folder, step, Shape(2, 1)),
    "node-loss": lambda folder, step: lost_node(folder, step, Shape(2, 1, preload=True)),
    "spare": lambda folder, step: lost_node(folder, step, Shape(2, 1, spares=1)),
    "hang": lambda folder, step: hung(folder, step, Shape(2, 1, act=True, preload=True)),
}
"""torchrun, sigkill and preloaded are one node of two ranks; torchrun-2, sigkill-2 and those below it two of one."""
RATIOS = (
    ("sigkill", "torchrun", 1.1),
    ("preloaded", "torchrun", 1.1),
    ("sigkill-2", "torchrun-2", 1.1),
    ("sigkill-2", "torchrun", 1.1),
    ("spare", "sigkill-2", 1.5),
)
SECONDS = {"node-loss": 5.0, "hang": 5.0}
_ROW = "{:<12} {:>9} {:>9} {:>9} {:>7}"
Rounds = dict[str, list[Outcome]]


def main() -> int:
    """Run and print; 0 when everything ran and every bar is met."""
    parser = argparse.ArgumentParser(prog="make bench-recovery")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, each contender once in turn (default 5)")
    parser.add_argument("--step", type=float, default=0.05, help="seconds of a step (default 0.05)")
    parser.add_argument("--only", nargs="+", choices=sorted(TRIALS), default=list(TRIALS))
    parser.add_argument("--folder", type=Path, help="where to write: the disk has its part in it")
    parser.add_argument("--json", action="store_true", help="all rounds")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a training that outlives us is in every later figure
    try:
        with tempfile.TemporaryDirectory(prefix="argosy-bench-", dir=args.folder) as scratch:
            rounds = race(Path(scratch), args.only, args.rounds, args.step)
    except BenchError as error:
        print(f"argosy: bench-recovery: {error}", file=sys.stderr)
        return 1
    print(
        json.dumps({name: [vars(each) for each in found] for name, found in rounds.items()})
        if args.json
        else table(rounds)
    )
    return 0 if all(held for _, held in bars(rounds, args.step)) else 1


def race(scratch: Path, names: list[str], rounds: int, step: float) -> Rounds:
    """Every contender once in each round, in an order that turns around."""
    found: Rounds = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(TRIALS[name](scratch / f"{number}-{name}", step))
            latest = found[name][-1]
            print(f"round {number + 1}: {name} {latest.resumed:.2f} s", file=sys.stderr, flush=True)
    return found


def table(rounds: Rounds, step: float = 0.05) -> str:
    """Medians in seconds, and the bars."""
    lines = [_ROW.format("", "verdict", "next step", "slowest", "rounds")]
    for name, found in rounds.items():
        resumed = [each.resumed for each in found]
        judged = statistics.median(each.judged for each in found)
        figures = (f"{judged:.2f}" if judged else "-", f"{statistics.median(resumed):.2f}", f"{max(resumed):.2f}")
        lines.append(_ROW.format(name, *figures, len(found)))
    return "\n".join([*lines, "", *(text for text, _ in bars(rounds, step))])


def bars(rounds: Rounds, step: float) -> list[tuple[str, bool]]:
    """Each bar in words, and whether it is met; the ratios are medians of the ratios within a round."""
    found = []
    for ours, other, bar in RATIOS:
        if ours in rounds and other in rounds:
            pairs = zip(rounds[ours], rounds[other], strict=True)
            ratio = statistics.median(mine.resumed / theirs.resumed for mine, theirs in pairs)
            found.append((f"{ours} beside {other}: {ratio:.2f}x (bar {bar}x)", ratio <= bar))
    for name, seconds in SECONDS.items():
        if name in rounds:
            bar = max(seconds, 5 * step) if name == "hang" else seconds
            median = statistics.median(each.resumed for each in rounds[name])
            found.append((f"{name} to the next step: {median:.2f} s (bar {bar:g} s)", median <= bar))
    return [(f"{text}: {'met' if held else 'MISSED'}", held) for text, held in found]


if __name__ == "__main__":
    sys.exit(main())
