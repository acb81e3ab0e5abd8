"""A training on a real cluster, hurt in every way that tests/cluster/faults.py knows, once each.

After each: the workflow ended well by itself, every step was committed, no committed step was trained again, and no
gang, pod or group of it is left.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.faults import FAULTS, survive
from tests.prove.record import Record

COUNT = len(FAULTS)
STEPS = 160
"""Of half a second: longer than what is away for a minute."""
COLUMNS = ["fault", "detected after (s)", "resumed after (s)", "steps lost", "leftovers", "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next faults that are not recorded yet; 0 when all that were done held."""
    record = Record("cluster-faults", seed)
    cluster = Cluster()
    with cluster.lent():
        todo = [fault for number, fault in enumerate(FAULTS) if number in record.left(count)]
        record.go_on(todo, lambda fault: _case(cluster, fault), minutes)
    title = "A training on a real cluster, hurt"
    note = "Zero seconds: training went on, nobody had to notice. A fault that ends the workflow is undone by a person."
    return record.told(title, COLUMNS, note=note)


def _case(cluster: Cluster, fault: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("fault") as namespace:
        try:
            cost = survive(cluster, namespace, Path(folder) / "run", fault, STEPS)
        except AssertionError as error:
            print(error, flush=True)
            return {"fault": fault, "held": False, "error": " ".join(str(error).split())[:200]}
    return {
        "fault": fault,
        "detected after (s)": cost["detected"],
        "resumed after (s)": cost["resumed"],
        "steps lost": int(cost["lost"]),
        "leftovers": 0,
        "held": True,
    }
