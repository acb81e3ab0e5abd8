"""``make bench-stage``: staging beside the peers, with the bars of the project.

python -m benchmarks.staging [--only NAME ...] [--beside s5cmd ...] [--rounds 5] [--folder DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks.paired import BenchError
from benchmarks.staging.contests import CONTESTS, Bench
from benchmarks.staging.outcome import load


def main() -> int:
    """Run and print; 0 when everything ran and every bar is met, 1 when a bar is missed, 2 when something failed."""
    parser = argparse.ArgumentParser(prog="make bench-stage", description="Staging beside s5cmd, rclone and others.")
    parser.add_argument("--only", nargs="+", choices=list(CONTESTS), default=list(CONTESTS), help="these contests")
    parser.add_argument("--beside", nargs="+", default=[], metavar="PEER", help="only peers whose name begins so")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of each contest (default 5)")
    parser.add_argument("--folder", type=Path, default=_memory(), help="where files go (default: memory)")
    parser.add_argument("--json", action="store_true", help="all figures of all rounds")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds {args.rounds}: at least 1")
    bench = Bench(args.rounds, args.folder, tuple(args.beside))
    found, code = {}, 0
    if not args.json:
        print(f"{_machine()}; files in {args.folder}; load average at the start {load()}", flush=True)
    for name in args.only:
        try:
            outcome = CONTESTS[name](bench)
        except BenchError as error:
            print(f"argosy: bench-stage {name}: {error}", file=sys.stderr)
            code = 2
            continue
        found[name] = {"title": outcome.title, "bars": outcome.bars, **outcome.facts}
        code = code or int(not all(held for _, held in outcome.bars))
        if not args.json:
            print(outcome.text(), flush=True)
    if args.json:
        print(json.dumps({"machine": _machine(), "contests": found}, indent=1))
    return code


def _memory() -> Path | None:
    # On a disk its speed would be measured, and peers do not wait until it has everything.
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else None


def _machine() -> str:
    facts = Path("/proc/cpuinfo").read_text(errors="replace") if Path("/proc/cpuinfo").exists() else ""
    name = next((line.split(":", 1)[1].strip() for line in facts.splitlines() if line.startswith("model name")), "")
    return f"{os.cpu_count()} x {name or platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main())
