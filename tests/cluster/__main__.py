"""``python -m tests.cluster up | down``: a real Kubernetes with Argo on this machine (``make cluster``)."""

from __future__ import annotations

import argparse
import sys

from tests.cluster import machine
from tests.cluster.cluster import Cluster, why_not
from tests.cluster.instance import Instance
from tests.cluster.progress import ClusterError, say


def main() -> int:
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "able"), help="able: whether it could start now, or why not")
    verb = parser.parse_args().verb
    if verb == "able":
        if reason := why_not():
            print(reason)
        return 1 if reason else 0
    try:
        cluster = Cluster(Instance.from_environment())
        machine.need_root()
        if verb == "up" and cluster.running:
            cluster.refresh()
            say(f"{cluster.instance.name} runs already; its nodes have the code of this checkout")
        elif verb == "up":
            cluster.up()
        else:
            say(f"{cluster.instance.name}: {cluster.down()} processes ended")
    except (ClusterError, ValueError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
