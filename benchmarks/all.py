"""``make bench``: every contest, as a table or as JSON.

python -m benchmarks.all [--only NAME ...] [--rounds 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.contests import CONTESTS
from benchmarks.paired import BenchError, Comparison

_ROW = "{:<18} {:>9} {:>9} {:>7} {:>8}  {}"


def main() -> int:
    """Run the contests; 0 when all could be run, whatever their figures."""
    parser = argparse.ArgumentParser(prog="make bench", description="Paired timings against peers.")
    parser.add_argument("--only", nargs="+", choices=sorted(CONTESTS), default=list(CONTESTS), help="these contests")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds of each contest, at least 5")
    parser.add_argument("--json", action="store_true", help="all figures of all rounds")
    args = parser.parse_args()
    if args.rounds < 5:
        parser.error(f"--rounds {args.rounds}: a median of fewer than 5 says little")
    found: list[Comparison] = []
    failed = False
    for name in args.only:
        with tempfile.TemporaryDirectory(prefix="argosy-bench-") as scratch:
            try:
                found.append(CONTESTS[name](Path(scratch), args.rounds))
            except BenchError as error:
                print(f"argosy: bench {name}: {error}", file=sys.stderr)
                failed = True
    print(json.dumps([_facts(each) for each in found], indent=2) if args.json else "\n".join(map(_table, found)))
    return int(failed)


def _table(comparison: Comparison) -> str:
    lines = [
        f"\n{comparison.title} ({len(comparison.rounds[comparison.ours])} rounds, medians)",
        _ROW.format("", "wall s", "CPU s", "+-", "ratio", ""),
    ]
    for name in comparison.rounds:
        median = comparison.median(name)
        ratio, verdict = "", ""
        if name != comparison.ours:
            ratio = f"{comparison.ratio(name):.2f}x"
            if comparison.bar:
                verdict = f"bar {comparison.bar}x: {'met' if comparison.ratio(name) <= comparison.bar else 'MISSED'}"
        spread = f"{100 * comparison.spread(name):.0f} %"
        lines.append(_ROW.format(name, f"{median.wall:.3f}", f"{median.cpu:.3f}", spread, ratio, verdict).rstrip())
    return "\n".join(lines)


def _facts(comparison: Comparison) -> dict[str, Any]:
    others = [name for name in comparison.rounds if name != comparison.ours]
    return {
        "title": comparison.title,
        "bar": comparison.bar or None,
        "ratios": {name: comparison.ratio(name) for name in others},
        "medians": {name: vars(comparison.median(name)) for name in comparison.rounds},
        "rounds": {name: [vars(timing) for timing in timings] for name, timings in comparison.rounds.items()},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
