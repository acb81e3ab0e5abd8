"""``python -m tests.processes KIND PHASE --seed SEED``: one chain of faults again; prints what it found."""

from __future__ import annotations

import argparse
import sys

from tests.processes.chain import Chain
from tests.processes.faults import KINDS
from tests.processes.lane import WORLD, lanes
from tests.processes.phases import PHASES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.processes")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("phase", choices=PHASES)
    parser.add_argument("--seed", default="20261121")
    args = parser.parse_args()
    with lanes(1) as (lane,):
        faults = [(args.kind, args.phase, rank) for rank in range(WORLD)]
        found = Chain(lane, f"{args.seed}/{args.kind}/{args.phase}").run(faults)
    print(found)
    return bool(found.wrong)


if __name__ == "__main__":
    sys.exit(main())
