"""A gang that is evicted again and again while it trains: it ends well, and the Workflow object does not grow.

One line is a training that loses a pod through the eviction API after each new commit. The restarts are the
supervisor's, inside one Argo pod, so that etcd keeps one node of the workflow whatever happens to the gang.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.faults import evict
from tests.cluster.scripts import WITHOUT_TORCH
from tests.cluster.training import Training, new_training
from tests.prove.record import Record

COUNT = 20
EACH = 25
"""Preemptions of one training; COUNT is the number of trainings."""
AT_ONCE = 4
"""Trainings beside each other, each in a namespace of its own: most of an eviction's 20 seconds is waiting."""
LIMIT_BYTES = 256 << 10
COLUMNS = ["training", "preemptions", "bytes at first", "bytes at the end", "pods of Argo for train", "steps lost",
           "called", "seconds", "held", "error"]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next trainings; 0 when all ended well with an object below 256 KiB."""
    record = Record("cluster-preemptions", seed)
    cluster = Cluster()
    with cluster.lent():
        os.environ.update(cluster.s3_environment)  # each training sets it for a moment, and takes it back
        record.go_on(record.left(count), lambda number: _case(cluster, number), minutes, AT_ONCE)
    return record.told("A gang that is evicted again and again", COLUMNS)


def _case(cluster: Cluster, number: int) -> dict[str, Any]:
    began = time.monotonic()
    case: dict[str, Any] = {"training": number + 1, "held": False, "error": ""}
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("evicted") as namespace:
        try:
            # torch would be imported by every rank of every restart, and has no part in what is shown.
            how: dict[str, Any] = {"script": WITHOUT_TORCH, "tables": {"gang": 'launcher = "plain"'}}
            training = new_training(cluster, namespace, Path(folder) / "run", steps=16 * EACH, seconds=0.5, **how)
            training.submit()
            case |= _evict(training)
        except AssertionError as error:
            print(error, flush=True)
            return case | {"error": " ".join(str(error).split())[:200]}
    held = case["bytes at the end"] <= LIMIT_BYTES and case["called"] == "preempted_evicted"
    return case | {"seconds": round(time.monotonic() - began), "held": held}


def _evict(training: Training) -> dict[str, Any]:
    lost, reached, sizes = 0.0, 0, []
    for _ in range(EACH):
        training.until_committed(reached + 2)
        reached = training.committed()
        sizes.append(_size(training))
        name = training.pods()[0]["metadata"]["name"]
        since = time.time()
        evict(training, name)
        training.until("a restart", lambda since=since: any(e.time > since for e in training.events("restart_began")))
        lost += training.account(since)["lost"]
    assert training.ended() == "Succeeded", training.tale()
    nodes = training.cluster.workflow(training.workflow, training.namespace)["status"]["nodes"].values()
    pods = [node["displayName"] for node in nodes if node["type"] == "Pod"]
    return {
        "preemptions": EACH,
        "bytes at first": sizes[0],
        "bytes at the end": _size(training),
        "pods of Argo for train": sum(name.startswith("train") for name in pods),
        "steps lost": int(lost),
        "called": ", ".join(sorted({str(event.fields["cause"]) for event in training.events("restart_ended")})),
    }


def _size(training: Training) -> int:
    found = training.cluster.workflow(training.workflow, training.namespace)
    found["metadata"].pop("managedFields", None)
    return len(json.dumps(found, separators=(",", ":")))
