"""``python -m tests.prove SUITE [--count N] [--seed S] [--minutes M]``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from argosy.steps.contract.env import S3_TRANSPORT, SETTABLE


def suites() -> list[str]:
    """Every suite there is: a module of this package with ``prove``."""
    here = Path(__file__).parent
    return sorted(path.stem.replace("_", "-") for path in here.glob("[a-z]*.py") if path.stem != "record")


def main() -> int:
    """Run one suite; 0 when every case held."""
    parser = argparse.ArgumentParser(prog="make prove SUITE=…", description=__doc__)
    parser.add_argument("suite", choices=suites())
    parser.add_argument("--count", type=int, help="cases in all (default: the suite's own, or 20)")
    parser.add_argument("--seed", type=int, default=20261121, help="seed of the random instants")
    parser.add_argument("--minutes", type=float, default=10, help="stop after about so long; run again to go on")
    parser.add_argument(
        "--transport", choices=SETTABLE[S3_TRANSPORT], help="what reads from S3, with a table of its own"
    )
    args = parser.parse_args()
    if args.transport:
        os.environ[S3_TRANSPORT] = args.transport
    module = importlib.import_module(f"tests.prove.{args.suite.replace('-', '_')}")
    if unset := [name for name in getattr(module, "NEEDS", ()) if name not in os.environ]:
        parser.error(f"{args.suite} needs {', '.join(unset)}: {module.__name__} says what lies there")
    count = args.count or getattr(module, "COUNT", 20)
    return int(module.prove(count=count, seed=args.seed, minutes=args.minutes))


if __name__ == "__main__":
    sys.exit(main())
