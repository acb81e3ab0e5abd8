"""What can happen to a training on a cluster. Each function does it and returns when it happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.training import Training, new_training, now

AWAY_SECONDS = 60.0

Fault = Callable[[Training], float]


def rank_killed(training: Training) -> float:
    """SIGKILL of one rank's process, on the node of rank 1.

    With ``gang.preload`` it keeps the name of what it is a fork of, as torchrun's fork does, which is older.
    """
    pod = max(training.pods(), key=lambda each: each["metadata"]["name"])
    code = training.execute(pod, "pkill", "-9", "-n", "-f", "^[^ ]*python (train.py|-P -m argosy.steps.launch.standby)")
    assert code != 1, f"no rank is there to be killed\n{training.tale()}"
    return now()


def pod_deleted(training: Training) -> float:
    """``kubectl delete pod`` of a node of the gang."""
    training.kubectl("delete", "pod", training.pods()[0]["metadata"]["name"], "--wait=false")
    return now()


def pod_evicted(training: Training) -> float:
    """A node of the gang is drained: the eviction API takes its pod."""
    evict(training, training.pods()[-1]["metadata"]["name"])
    return now()


def evict(training: Training, pod: str) -> None:
    """As ``kubectl drain`` does it."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{training.namespace}/pods/{pod}/eviction"
    training.cluster.api.request("POST", path, eviction)


def supervisor_killed(training: Training) -> float:
    """SIGKILL of the supervisor; the gang does not notice."""
    training.execute(training.pods(role="supervisor")[0], "pkill", "-9", "-f", "argosy.steps.train")
    return now()


def supervisor_deleted(training: Training) -> float:
    """Its pod is deleted at once, without the time to end anything."""
    name = training.pods(role="supervisor")[0]["metadata"]["name"]
    training.kubectl("delete", "pod", name, "--wait=false", "--grace-period=0", "--force")
    return now()


def supervisor_evicted(training: Training) -> float:
    """Its node is drained; the gang, on others, trains on."""
    evict(training, training.pods(role="supervisor")[0]["metadata"]["name"])
    return now()


def node_drained(training: Training) -> float:
    """One that a pod of the gang and the supervisor are on: both are evicted at once."""
    supervisor_evicted(training)
    return pod_evicted(training)


def controller_restarted(training: Training) -> float:
    """The Argo controller is killed in mid-train and started again."""
    training.cluster.component("workflow-controller").restart()
    return now()


def node_lost(training: Training) -> float:
    """A node of the gang loses its power, and comes back when training has gone on."""
    node = apart(training)
    training.cluster.nodes[node].kill()
    since = now()
    training.until("training to go on elsewhere", lambda: _went_on(training, since))
    training.cluster.nodes[node].up()
    training.cluster.nodes[node].wait_ready()
    return since


def node_unplugged(training: Training) -> float:
    """A node's cable is pulled; its pod runs on, unheard, and is a zombie when the cable is back."""
    node = apart(training)
    training.cluster.nodes[node].partition()
    since = now()
    training.until("training to go on elsewhere", lambda: _went_on(training, since))
    training.cluster.nodes[node].heal()
    training.cluster.nodes[node].wait_ready()
    return since


def supervisor_node_restarted(training: Training) -> float:
    """The supervisor's node loses its power, and is back when it was missed: its pods are remembered by nobody."""
    name = training.pods(role="supervisor")[0]["spec"]["nodeName"]
    node, since = training.cluster.nodes[name], now()
    node.kill()
    node.wait_ready(False)
    node.up()
    node.wait_ready()
    return since


def api_away(training: Training) -> float:
    """The API server answers nobody for a minute."""
    return _paused(training, "kube-apiserver")


def etcd_restarted(training: Training) -> float:
    """etcd is killed and started again on its data."""
    training.cluster.component("etcd").restart()
    return now()


def s3_away(training: Training) -> float:
    """The store answers nobody for a minute."""
    since = now()
    training.cluster.cut_s3(True)
    try:
        time.sleep(AWAY_SECONDS)
    finally:
        training.cluster.cut_s3(False)
    return since


def s3_slow(training: Training) -> float:
    """The store has a line of 1 Mbit/s for a minute."""
    since = now()
    training.cluster.slow_s3("1mbit")
    try:
        time.sleep(AWAY_SECONDS)
    finally:
        training.cluster.slow_s3(None)
    return since


def stopped_and_retried(training: Training) -> float:
    """``argo stop``, and ``argo retry`` when it has ended."""
    return _ended_by(training, "stop", "retry")


def terminated_and_retried(training: Training) -> float:
    """``argo terminate``, and ``argo retry``."""
    return _ended_by(training, "terminate", "retry")


def stopped_and_resubmitted(training: Training) -> float:
    """``argo stop``, and ``argo resubmit -p run-id=…``: another workflow goes on where this one was."""
    return _ended_by(training, "stop", "resubmit", "-p", f"run-id={training.workflow}")


FAULTS: Mapping[str, Fault] = {
    fault.__name__: fault
    for fault in (
        rank_killed, pod_deleted, pod_evicted, supervisor_killed, supervisor_deleted, supervisor_evicted,
        node_drained, controller_restarted, node_lost, node_unplugged, supervisor_node_restarted, api_away,
        etcd_restarted, s3_away, s3_slow, stopped_and_retried, terminated_and_retried, stopped_and_resubmitted,
    )
}  # fmt: skip
NOTICED = ("rank_killed", "pod_deleted", "pod_evicted", "node_drained", "node_lost", "node_unplugged")
"""What must have ended a restart: a fault that nobody noticed was none."""
UNNOTICED = ("supervisor_killed", "supervisor_deleted", "supervisor_evicted", "controller_restarted")
"""What the gang never hears of."""
QUICK = (
    "rank_killed",
    "pod_deleted",
    "supervisor_killed",
    "supervisor_evicted",
    "node_lost",
    "etcd_restarted",
    "stopped_and_retried",
)
"""What CI does each time; ``make prove SUITE=cluster-faults`` does all."""


def survive(cluster: Cluster, namespace: str, folder: Path, fault: str, steps: int = 60) -> dict[str, float]:
    """Train, hurt it after some commits, and see it end well with nothing lost and nothing left; what it cost."""
    return survived(new_training(cluster, namespace, folder, steps=steps), fault)


def survived(training: Training, fault: str, *kinds: str) -> dict[str, float]:
    """The same of a training that is not submitted yet; ``kinds`` must be gone besides."""
    training.submit()
    training.until_committed(10)
    since = FAULTS[fault](training)
    assert training.ended() == "Succeeded", training.tale()
    assert training.committed() == training.steps, training.tale()
    training.until("nothing to be left", lambda: not training.leftovers("services", *kinds), 60)
    cost = training.account(since)
    assert cost["detected"] > 0 or fault not in NOTICED, training.tale()
    assert cost["detected"] == 0 or fault not in UNNOTICED, training.tale()
    return cost


def apart(training: Training) -> str:
    """A node of the gang that the supervisor is not on."""
    busy = {pod["spec"].get("nodeName") for pod in training.pods(role="supervisor")}
    return str(next(node for pod in training.pods() if (node := pod["spec"]["nodeName"]) not in busy))


def _went_on(training: Training, since: float) -> bool:
    return any(event.time > since for event in training.events("restart_began"))


def _paused(training: Training, component: str) -> float:
    since = now()
    training.cluster.component(component).pause()
    try:
        time.sleep(AWAY_SECONDS)
    finally:
        training.cluster.component(component).resume()
        training.cluster.component(component).wait(120)
    return since


def _ended_by(training: Training, how: str, again: str, *options: str) -> float:
    since = now()
    training.cluster.argo(how, training.workflow, namespace=training.namespace)
    training.ended()
    training.until("everything of the gang to go", lambda: not training.leftovers(), 120)
    said = training.cluster.argo(again, training.workflow, *options, "-o", "name", namespace=training.namespace)
    if again == "resubmit":
        training.workflow = said.strip().rpartition("/")[2]
    return since
