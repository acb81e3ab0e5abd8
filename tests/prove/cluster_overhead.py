"""What the supervisor costs beside a bare JobSet in a bare Argo step, in pairs on one cluster.

Both run the same script for the same steps. ``seconds`` is the Argo step from its start to its end. In the middle of
the supervised training the supervisor's memory and processor time are read from the kubelet, and the requests of its
account from the API server's audit log.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster import bare, control_plane
from tests.cluster.cluster import Cluster
from tests.cluster.training import SCRIPT, Training, new_training
from tests.prove.record import Record

COUNT = 5
STEPS, STEP_SECONDS = 120, 0.5
STEADY_SECONDS = 30.0
BARS = {"more seconds": 3.0, "MiB": 160.0, "millicores": 20.0, "requests/s": 0.2, "pods of Argo": 1}
COLUMNS = ["round", "bare (s)", "supervised (s)", *BARS, "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next rounds; 0 when each was within the bars."""
    record = Record("cluster-overhead", seed)
    cluster = Cluster()
    with cluster.lent():
        record.go_on(record.left(count), lambda number: _case(cluster, number), minutes)
    cases = [case for case in record.cases() if not case["error"]]
    medians = {bar: statistics.median(case[bar] for case in cases) for bar in BARS} if cases else {}
    said = ", ".join(f"{bar} {value:g} (bar {BARS[bar]:g})" for bar, value in medians.items())
    return record.told("What the supervisor costs beside a bare JobSet", COLUMNS, note=f"Medians: {said}.")


def _case(cluster: Cluster, number: int) -> dict[str, Any]:
    case: dict[str, Any] = {"round": number + 1, "held": False, "error": ""}
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("cost") as namespace:
        try:
            training = new_training(cluster, namespace, Path(folder) / "run", steps=STEPS, seconds=STEP_SECONDS)
            orders = (_supervised, _bare) if number % 2 else (_bare, _supervised)
            for order in orders:
                case |= order(training)
        except AssertionError as error:
            print(error, flush=True)
            return case | {"error": " ".join(str(error).split())[:200]}
    case["more seconds"] = round(case["supervised (s)"] - case["bare (s)"], 1)
    return case | {"held": all(case[name] <= bar for name, bar in BARS.items())}


def _bare(training: Training) -> dict[str, Any]:
    cluster, namespace = training.cluster, training.namespace
    for document in bare.workflow("bare", SCRIPT, str(STEPS), str(STEP_SECONDS)):
        cluster.api.create(document, namespace)
    ended = cluster.wait_workflow("bare", namespace, 300)
    assert ended["status"]["phase"] == "Succeeded", ended["status"]
    return {"bare (s)": _seconds(next(iter(ended["status"]["nodes"].values())))}


def _supervised(training: Training) -> dict[str, Any]:
    training.submit()
    training.until_committed(5)
    pod = training.pods(role="supervisor")[0]
    before, began = _used(training, pod), time.time()
    time.sleep(STEADY_SECONDS)
    after, ended = _used(training, pod), time.time()
    asked = _requests(training, began, ended)
    assert training.ended() == "Succeeded", training.tale()
    nodes = training.cluster.workflow(training.workflow, training.namespace)["status"]["nodes"].values()
    step = next(node for node in nodes if node["displayName"] == "train")
    tries = [node for node in nodes if node["displayName"].startswith("train") and node["type"] == "Pod"]
    return {
        "supervised (s)": _seconds(step),
        "MiB": round(after["memory"]["workingSetBytes"] / 2**20),
        "millicores": round(
            (after["cpu"]["usageCoreNanoSeconds"] - before["cpu"]["usageCoreNanoSeconds"]) / (ended - began) / 1e6, 1
        ),
        "requests/s": round(asked / (ended - began), 2),
        "pods of Argo": len(tries),
    }


def _used(training: Training, pod: dict[str, Any]) -> dict[str, Any]:
    """The kubelet's account of the supervisor's own container, read anew."""
    path = f"/api/v1/nodes/{pod['spec']['nodeName']}/proxy/stats/summary"
    pods = training.cluster.api.request("GET", path)["pods"]
    found = next(each for each in pods if each["podRef"]["name"] == pod["metadata"]["name"])
    container: dict[str, Any] = next(each for each in found["containers"] if each["name"] == "main")
    return container


def _requests(training: Training, since: float, until: float) -> int:
    """How often the run's account asked the API server."""
    account = f"system:serviceaccount:{training.namespace}:argosy"
    lines = control_plane.audit_log(training.cluster.instance).read_text().splitlines()
    asked = [record for line in lines if (record := json.loads(line))["user"]["username"] == account]
    return sum(since <= _time(record["requestReceivedTimestamp"]) <= until for record in asked)


def _seconds(node: dict[str, Any]) -> float:
    return _time(node["finishedAt"]) - _time(node["startedAt"])


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
