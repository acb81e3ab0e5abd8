"""Racks, spot nodes and what doctor says of them, on a real cluster with the real Kueue."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.contention import KUEUE, QUEUE, SLOT, offer_slots
from tests.cluster.faults import evict
from tests.cluster.training import ARGOSY, Training, new_training

RACK, POOL, SPOT = "argosy.test/rack", "argosy.test/pool", "argosy.test/spot"
APART = {"node-a": "r1", "node-b": "r2", "node-c": "r3"}
"""No rack has room for two pods."""


@pytest.fixture
def racks(cluster: Cluster) -> Iterator[None]:
    """A slot on each node, each in a rack of its own, and of one pool; afterwards they have no such labels."""
    offer_slots(cluster)
    for node, rack in APART.items():
        cluster.kubectl("label", "node", node, "--overwrite", f"{RACK}={rack}", f"{POOL}=gang")
    try:
        yield
    finally:
        for node in APART:
            cluster.kubectl("label", "node", node, f"{RACK}-", f"{POOL}-", f"{SPOT}-")


@contextmanager
def topology_queue(cluster: Cluster, namespace: str) -> Iterator[None]:
    """A LocalQueue whose nodes Kueue knows by rack; its quota is for more than there is."""
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    quotas = [{"name": name, "nominalQuota": quota} for name, quota in (("cpu", 100), ("memory", "999Gi"), (SLOT, 99))]
    covered = {
        "coveredResources": [each["name"] for each in quotas],
        "flavors": [{"name": "racked", "resources": quotas}],
    }
    made: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("Topology", "racks", {"levels": levels}),
        ("ResourceFlavor", "racked", {"nodeLabels": {POOL: "gang"}, "topologyName": "racks"}),
        ("ClusterQueue", namespace, {"namespaceSelector": {}, "resourceGroups": [covered]}),
        ("LocalQueue", QUEUE, {"clusterQueue": namespace}),
    )
    for kind, name, spec in made:
        cluster.api.apply([{"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}], namespace)
    try:
        yield
    finally:
        for kind, name, _ in reversed(made[:3]):
            cluster.api.delete(KUEUE, kind, name)


def doctor(training: Training, cluster: Cluster) -> dict[str, tuple[str, str]]:
    """What was looked at -> (state, detail)."""
    command = [*ARGOSY, "doctor", "run.toml", "-n", training.namespace, "--json"]
    environment = {**os.environ, **cluster.s3_environment, "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(command, cwd=training.folder, env=environment, capture_output=True, text=True)
    return {each["what"]: (each["state"], each["detail"]) for each in json.loads(done.stdout)["checks"]}


def where(training: Training) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in training.pods())


WAYS = {
    "kueue": f'placement = "kueue"\nqueue = "{QUEUE}"',
    "kueue-job": f'placement = "kueue"\nqueue = "{QUEUE}"\nruntime = "job"',
    "none": "",
}


@pytest.mark.parametrize(
    "way", ["kueue", *(pytest.param(each, marks=pytest.mark.variant) for each in ("kueue-job", "none"))]
)
def test_a_gang_waits_for_a_rack_that_has_room_for_all_of_it(
    cluster: Cluster, namespace: str, racks: None, tmp_path: Path, way: str
) -> None:
    gang = f'resources.extended = {{ "{SLOT}" = "1" }}\ntopology = {{ required = "{RACK}" }}\n{WAYS[way]}'
    tables = {"gang": gang, "deadlines": "placement_seconds = 5" if way == "none" else ""}
    training = new_training(cluster, namespace, tmp_path / "run", steps=20, tables=tables)
    with topology_queue(cluster, namespace):
        training.submit()

        def waited() -> list[Any]:
            told = [event.fields for event in training.events("gang_waits")]
            return [each for each in told if each["why"] and (each["phase"] == "queued" or way == "none")]

        training.until("the reason why it waits", waited)
        if way != "none":
            assert "topology" in waited()[-1]["why"], training.tale()
            assert set(where(training)) <= {""}
        assert training.committed() == 0
        # Kueue finds the rack that is large enough; pods that follow the first one need it to be the one that it chose.
        joined = APART if way == "none" else ("node-b", "node-c")
        for node in joined:
            cluster.kubectl("label", "node", node, "--overwrite", f"{RACK}=r2")
        training.until_committed(2)
        assert set(where(training)) <= {*joined}, training.tale()
        assert len(set(where(training))) == 2
        assert training.ended() == "Succeeded", training.tale()


def test_spot_nodes_are_left_after_so_many_preemptions(
    cluster: Cluster, namespace: str, racks: None, tmp_path: Path
) -> None:
    spot = f'[gang.spot]\nlabel = "{SPOT}"\npreemptions = 2\n'
    spot += f'tolerations = [{{ key = "{SPOT}", operator = "Exists", effect = "NoSchedule" }}]\n'
    training = new_training(cluster, namespace, tmp_path / "run", steps=60, tables={"gang": spot})
    for node in ("node-a", "node-b"):
        cluster.kubectl("label", "node", node, f"{SPOT}=true")
        cluster.kubectl("taint", "node", node, f"{SPOT}=true:NoSchedule")
    try:
        training.submit()
        for gang in (1, 2):

            def trains(gang: int = gang) -> bool:
                return len(training.events("restart_began")) == gang

            training.until(f"gang {gang} to train", trains)
            training.until_committed(training.committed() + 2)
            assert set(where(training)) <= {"node-a", "node-b"}, training.tale()
            evict(training, training.pods()[0]["metadata"]["name"])
        training.until("the third gang to train", lambda: len(training.events("restart_began")) == 3)
        assert set(where(training)) == {"node-c"}, training.tale()
        assert training.ended() == "Succeeded", training.tale()
    finally:
        for node in ("node-a", "node-b"):
            cluster.kubectl("taint", "node", node, f"{SPOT}-")
    capacities = [event.fields["capacity"] for event in training.events("gang_created")]
    assert capacities == ["spot", "spot", "on-demand"], training.tale()


def test_doctor_names_what_the_cluster_lacks_for_a_rack(
    cluster: Cluster, namespace: str, racks: None, tmp_path: Path
) -> None:
    gang = f'topology = {{ required = "{RACK}" }}\nplacement = "kueue"\nqueue = "{QUEUE}"\nqueue_priority = "urgent"\n'
    gang += f'spot = {{ label = "{SPOT}" }}'
    training = new_training(cluster, namespace, tmp_path / "run", tables={"gang": gang})
    training.compile()
    topology = f"Kueue topology with {RACK}"
    lacking = doctor(training, cluster)
    absent = (topology, f"label {SPOT}=true", "queue priority urgent", f"queue {QUEUE}")
    assert {name: lacking[name][0] for name in absent} == dict.fromkeys(absent, "missing")
    assert lacking[f"label {RACK}"] == ("ok", "on 3 of 3 nodes, 3 of its values")
    priority = {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster.api.apply([priority])
    cluster.kubectl("label", "node", "node-a", f"{SPOT}=true")
    try:
        with topology_queue(cluster, namespace):
            found = doctor(training, cluster)
    finally:
        cluster.api.delete(KUEUE, "WorkloadPriorityClass", "urgent")
    assert {name: found[name][0] for name in absent} == dict.fromkeys(absent, "ok"), found
