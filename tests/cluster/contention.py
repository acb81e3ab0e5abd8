"""Two gangs of two nodes and three slots, one on each node: submitted together they do not both fit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.training import Training, new_training

SLOT = "argosy.test/slot"
KUEUE = "kueue.x-k8s.io/v1beta2"
POLL_SECONDS = 0.5
QUEUE = "runs"
WAYS = {
    "native": ('placement = "native"', ""),
    "kueue": (f'placement = "kueue"\nqueue = "{QUEUE}"', ""),
    "none": ('runtime = "job"', "placement_seconds = 5"),
}
"""By placement: lines of the tables ``gang`` and ``deadlines``."""


@dataclass
class Contention:
    """Gangs, watched until all have ended: how many nodes each held at each look, until it began to end."""

    trainings: list[Training]
    held: list[tuple[int, ...]] = field(default_factory=list)
    ending: set[str] = field(default_factory=set)
    """Workflows of which a pod has ended well or is being deleted: what still runs there ends in a moment."""

    def run(self, seconds: float = 300) -> None:
        for training in self.trainings:
            training.submit()
        deadline = time.monotonic() + seconds
        while any(self._phase(training) not in ("Succeeded", "Failed", "Error") for training in self.trainings):
            assert time.monotonic() < deadline, "\n\n".join(training.tale() for training in self.trainings)
            self.held.append(self._nodes())
            time.sleep(POLL_SECONDS)
        phases = {self._phase(training) for training in self.trainings}
        assert phases == {"Succeeded"}, "\n\n".join(training.tale() for training in self.trainings)

    @staticmethod
    def _phase(training: Training) -> str:
        found = training.cluster.workflow(training.workflow, training.namespace)
        return str(found.get("status", {}).get("phase", ""))

    def _nodes(self) -> tuple[int, ...]:
        """Of each, from one answer: between two, one gang may end and the other take its place."""
        first = self.trainings[0]
        found = json.loads(first.kubectl("get", "pods", "-l", "argosy.dev/gang", "-o", "json"))["items"]
        pods = [(pod["metadata"]["labels"]["workflows.argoproj.io/workflow"], pod) for pod in found]
        # An operator says that its workload has succeeded as rank 0 ends, and Kueue admits the next upon that word.
        self.ending |= {
            workflow
            for workflow, pod in pods
            if pod["status"]["phase"] == "Succeeded" or "deletionTimestamp" in pod["metadata"]
        }
        holding = [
            workflow
            for workflow, pod in pods
            if pod["status"]["phase"] in ("Pending", "Running") and pod["spec"].get("nodeName")
            if workflow not in self.ending
        ]
        return tuple(holding.count(training.workflow) for training in self.trainings)

    @property
    def both_held(self) -> list[tuple[int, ...]]:
        """The looks at which two held nodes."""
        return [nodes for nodes in self.held if sum(map(bool, nodes)) > 1]

    @property
    def created(self) -> list[int]:
        """How many gangs each training made."""
        return [len(training.events("gang_created")) for training in self.trainings]


def offer_slots(cluster: Cluster) -> None:
    """One slot on each of the three nodes."""
    for node in cluster.nodes.values():
        node.offer(SLOT, 1)


@contextmanager
def local_queue(cluster: Cluster, namespace: str, quotas: dict[str, str]) -> Iterator[str]:
    """A LocalQueue of the namespace with so much of each resource; its name."""
    resources = [{"name": name, "nominalQuota": quota} for name, quota in quotas.items()]
    groups = [{"coveredResources": list(quotas), "flavors": [{"name": "any", "resources": resources}]}]
    made: list[tuple[str, str, dict[str, Any]]] = [
        ("ResourceFlavor", "any", {}),
        ("ClusterQueue", namespace, {"namespaceSelector": {}, "resourceGroups": groups}),
        ("LocalQueue", QUEUE, {"clusterQueue": namespace}),
    ]
    for kind, name, spec in made:
        cluster.api.apply([{"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}], namespace)
    try:
        yield QUEUE
    finally:
        cluster.api.delete(KUEUE, "ClusterQueue", namespace)


def contend(cluster: Cluster, namespace: str, folder: Path, placement: str, steps: int = 10) -> Contention:
    """Two gangs of two in one namespace, submitted together; both have ended well. See :data:`WAYS`."""
    gang, deadlines = WAYS[placement]
    tables = {"gang": f'resources.extended = {{ "{SLOT}" = "1" }}\n{gang}', "deadlines": deadlines}
    folder.mkdir(exist_ok=True)
    first = new_training(cluster, namespace, folder / "one", name="one", steps=steps, tables=tables)
    second = Training(cluster, namespace, folder / "two", name="two", steps=steps, tables=tables)
    made = Contention([first, second])
    quotas = {SLOT: "3", "cpu": "100", "memory": "100Gi"}
    if placement == "kueue":
        with local_queue(cluster, namespace, quotas):
            made.run()
    else:
        made.run()
    return made
