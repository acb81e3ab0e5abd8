"""Two gangs of two nodes, submitted together to three one-slot nodes: with each placement in turn.

``native`` and ``kueue``: one trains while the other holds nothing, and no gang is made twice. ``none``: both end, and
the account shows the node-minutes that were held in vain.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from argosy.steps.record.waiting import waiting_of
from tests.cluster.cluster import Cluster
from tests.cluster.contention import WAYS, contend, offer_slots
from tests.prove.record import Record

COUNT = 60
STEPS = 6
COLUMNS = [
    "placement", "gangs made", "looks", "both held nodes", "node-minutes lost", "seconds", "held", "error",
]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next contentions that are not recorded yet; 0 when all that were done held."""
    record = Record("cluster-contention", seed)
    cluster = Cluster()
    with cluster.lent():
        offer_slots(cluster)
        record.go_on(record.left(count), lambda number: _case(cluster, number), minutes)
    return record.told("Two gangs and room for one", COLUMNS, by=["placement"])


def _case(cluster: Cluster, number: int) -> dict[str, Any]:
    placement = list(WAYS)[number % len(WAYS)]
    case: dict[str, Any] = {"placement": placement, "number": number // len(WAYS) + 1}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("slots") as namespace:
        try:
            found = contend(cluster, namespace, Path(folder) / "runs", placement, STEPS)
            left = [name for training in found.trainings for name in training.leftovers()]
            waits = [waiting_of(training.events(), time.time()) for training in found.trainings]
        except AssertionError as error:
            print(error, flush=True)
            return case | {"held": False, "error": " ".join(str(error).split())[:200]}
    alone = placement == "none" or (not found.both_held and found.created == [1, 1])
    return case | {
        "gangs made": "+".join(map(str, found.created)),
        "looks": len(found.held),
        "both held nodes": sum(all(nodes) for nodes in found.held),
        "node-minutes lost": round(sum(wait.held_node_seconds for wait in waits if wait) / 60, 2),
        "seconds": round(time.monotonic() - began),
        "held": alone and not left,
        "error": " ".join(left),
    }
