"""Gangs on their runtimes and placements: they train, and two of them on three nodes do not hold each other up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from argosy.steps.contract.objects import UID_LABEL
from tests.cluster.cluster import Cluster
from tests.cluster.contention import SLOT, WAYS, contend, offer_slots
from tests.cluster.faults import rank_killed
from tests.cluster.training import Training, new_training


@pytest.fixture(scope="module")
def slots(cluster: Cluster) -> None:
    offer_slots(cluster)


def test_a_pod_group_lets_one_gang_train_and_the_other_hold_nothing(
    cluster: Cluster, namespace: str, slots: None, tmp_path: Path
) -> None:
    found = contend(cluster, namespace, tmp_path, "native")
    assert not found.both_held
    assert found.created == [1, 1]


def test_a_queue_lets_one_gang_train_and_the_other_hold_nothing(
    cluster: Cluster, namespace: str, slots: None, tmp_path: Path
) -> None:
    # So many that one still trains when the other's gang is made, however late its supervisor begins.
    found = contend(cluster, namespace, tmp_path, "kueue", steps=60)
    assert not found.both_held
    waited = [event.fields for training in found.trainings for event in training.events("gang_waits")]
    # Kueue's own words: no room, or that it admits nobody while an admitted gang's pods are not all there.
    queued = [str(event["why"]) for event in waited if event["phase"] == "queued"]
    assert any("quota" in why or "PodsReady" in why for why in queued), [
        training.tale() for training in found.trainings
    ]


def test_without_a_placement_both_end_because_what_is_partly_placed_lets_go(
    cluster: Cluster, namespace: str, slots: None, tmp_path: Path
) -> None:
    contend(cluster, namespace, tmp_path, "none")


@pytest.mark.parametrize("placement", ["native", "none"])
def test_a_gang_that_does_not_fit_says_why_and_trains_when_there_is_room(
    cluster: Cluster, namespace: str, slots: None, tmp_path: Path, placement: str
) -> None:
    gang, deadlines = WAYS[placement]
    tables = {"gang": f'resources.extended = {{ "{SLOT}" = "2" }}\n{gang}', "deadlines": deadlines}
    training = new_training(cluster, namespace, tmp_path / "run", steps=6, tables=tables)
    training.submit()

    def told() -> bool:
        return any(f"Insufficient {SLOT}" in str(event.fields["why"]) for event in training.events("gang_waits"))

    training.until("the reason to be told", told)
    assert training.committed() == 0
    try:
        for node in cluster.nodes.values():
            node.offer(SLOT, 2)
        assert training.ended() == "Succeeded", training.tale()
    finally:
        offer_slots(cluster)
    assert not [event for event in training.events("budget") if event.fields["spent"]], training.tale()
    training.until("nothing to be left", lambda: not training.leftovers(), 60)


@pytest.mark.parametrize("gang", ['runtime = "job"', 'runtime = "job"\nplacement = "native"'])
def test_an_indexed_job_trains_and_survives_a_lost_pod(
    cluster: Cluster, namespace: str, tmp_path: Path, gang: str
) -> None:
    training = new_training(cluster, namespace, tmp_path / "run", steps=20, tables={"gang": gang})
    training.submit()
    training.until_committed(3)
    deleted = training.pods()[0]["metadata"]["name"]
    # Who tidies up takes the token, too: the next gang's pods waited for it in vain.
    training.kubectl("delete", "secret,service,networkpolicy", "-l", UID_LABEL)
    training.kubectl("delete", "pod", deleted, "--wait=false")
    assert training.ended() == "Succeeded", training.tale()
    assert len(training.events("gang_created")) == 2
    kept = evidence(training)
    assert {Path(key).name for key in kept} >= {f"{deleted}.tar.gz", "host.json"}, sorted(kept)
    host = json.loads(next(data for key, data in kept.items() if key.endswith("host.json")))
    (pod,) = (each for each in host["pods"] if each["name"] == deleted)
    assert pod["status"]["conditions"]
    assert any(event["about"].startswith(deleted) for event in host["events"]), host["events"]
    training.until("nothing to be left", lambda: not training.leftovers(), 60)


def evidence(training: Training) -> dict[str, bytes]:
    """What was kept of starts that failed, by key."""
    with training.store() as store:
        return {info.key: store.get(info.key) for info in store.list("") if "/bundle/" in info.key}


def test_prometheus_is_told_of_a_running_gang(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(cluster, namespace, tmp_path / "run", steps=40)
    training.submit()
    training.until_committed(3)
    rank_killed(training)
    training.until("the failure to be told", lambda: training.events("restart_ended"))
    training.until_committed(10)
    (supervisor,) = training.pods(role="supervisor")
    # As a PodMonitor finds it: a port's name, and the pod's address.
    named = {port["name"]: port for each in supervisor["spec"]["containers"] for port in each.get("ports", ())}
    url = f"http://{supervisor['status']['podIP']}:{named['metrics']['containerPort']}/metrics"
    asked = f"import urllib.request; print(urllib.request.urlopen({url!r}, timeout=20).read().decode())"
    other = training.pods()[0]["metadata"]["name"]
    text = cluster.kubectl("exec", "-n", namespace, other, "--", "python3", "-c", asked)
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    told = {sample.name: sample.value for sample in samples}
    assert told["argosy_nodes"] == 2
    assert told["argosy_checkpoint_step"] >= 10
    assert told["argosy_step"] >= told["argosy_checkpoint_step"]
    assert told["argosy_attempts_total"] == 2
    assert told["argosy_failures_total"] == 1
    assert training.ended() == "Succeeded", training.tale()


@pytest.mark.variant
def test_an_elastic_gang_trains_on_the_nodes_there_are_and_grows_with_the_next_gang(
    cluster: Cluster, namespace: str, slots: None, tmp_path: Path
) -> None:
    tables = {"gang": f'resources.extended = {{ "{SLOT}" = "1" }}'}
    training = new_training(cluster, namespace, tmp_path / "run", steps=30, nnodes="2:3", tables=tables)

    def sizes() -> list[int]:
        return [int(event.fields["nnodes"]) for event in training.events("gang_created")]

    cluster.nodes["node-c"].offer(SLOT, 0)
    try:
        training.submit()
        training.until_committed(5)
        assert sizes() == [3, 2], training.tale()
    finally:
        offer_slots(cluster)
    training.kubectl("delete", "pod", training.pods()[0]["metadata"]["name"], "--wait=false")
    assert training.ended() == "Succeeded", training.tale()
    assert sizes() == [3, 2, 3], training.tale()
    assert training.events("restart_ended")[0].fields["cause"] == "unschedulable"
    assert training.events("restart_began")[-1].fields["restored_step"] >= 5
