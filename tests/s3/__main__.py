"""``python -m tests.s3``: prints its endpoint, serves until SIGTERM or SIGINT, then prints what it did."""

from __future__ import annotations

import argparse
import collections
import signal
import sys

from tests.s3.faults import KINDS, TRANSIENT, at_random, nothing
from tests.s3.server import S3Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.s3", description="an S3 server whose requests go wrong")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: a free one (it is printed)")
    parser.add_argument("--bucket", action="append", help="may be given again (default: argosy-tests)")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--fault-rate", type=float, default=0.0, help="share of the requests that go wrong, 0 to 1")
    parser.add_argument("--kinds", default=",".join(TRANSIENT), help="of: " + ", ".join(KINDS))
    parser.add_argument("--slow-seconds", type=float, default=0.2, help="how long a slow answer drips")
    parser.add_argument("--forward", default="", help="endpoint of a real S3 that keeps the objects")
    args = parser.parse_args()
    kinds = tuple(args.kinds.split(","))
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    plan = at_random(args.seed, args.fault_rate, kinds) if args.fault_rate else nothing
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with S3Server(args.bucket or ("argosy-tests",), port=args.port, plan=plan, forward=args.forward) as server:
        server.slow_seconds = args.slow_seconds
        print(server.endpoint, flush=True)
        signal.sigwait(signals)
        struck = collections.Counter(seen.fault for seen in server.requests if seen.fault)
    print(f"{len(server.requests)} requests, {struck.total()} went wrong (seed {args.seed}):", file=sys.stderr)
    print(" ".join(f"{kind}={count}" for kind, count in sorted(struck.items())), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
