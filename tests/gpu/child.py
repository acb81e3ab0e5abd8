"""One case in a process of its own: ``python -m tests.gpu.child PART CASE --device cpu --folder DIR --seconds 60``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path

from tests.gpu.case import SKIPPED, Case, Skipped, part


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part")
    parser.add_argument("case")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--known", type=json.loads, default={})
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    case = Case(args.case, args.device, args.folder, args.seconds, args.known)
    try:
        part(args.part).cases[args.case](case)
    except Skipped as reason:
        print(reason, flush=True)
        return SKIPPED
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # communicators and compilers take long to leave in order, and some never do
