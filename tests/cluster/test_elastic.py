"""Elastic gangs on a real cluster: a node goes and comes back, and nothing is trained twice or in another batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.steps.record.building import build_record
from argosy.workflows.cli.explain import story
from tests.cluster.cluster import Cluster
from tests.cluster.contention import SLOT, offer_slots
from tests.cluster.faults import apart
from tests.cluster.training import SCRIPT, Training, new_training

BATCH = "[batch]\nmicro_batch_size = 1\naccumulation_steps = 2\n"
"""Six samples per optimizer step with three nodes: with two of them, three micro steps."""
COUNTING = SCRIPT.replace(
    '    state = {"step"',
    '    assert int(os.environ["ARGOSY_GRADIENT_ACCUMULATION_STEPS"]) * dist.get_world_size() == 6\n'
    '    assert state["sum"] == state["step"] * step // 2, "a step was counted twice, or never"\n'
    '    state = {"step"',
)
assert COUNTING.count("assert") == SCRIPT.count("assert") + 2


def sizes(training: Training) -> list[int]:
    return [int(event.fields["nnodes"]) for event in training.events("gang_created")]


def grew(training: Training) -> None:
    """From two nodes to three, at no cost and without a step that was committed."""
    assert training.ended() == "Succeeded", training.tale()
    assert sizes(training)[-2:] == [2, 3], training.tale()
    (grown,) = training.events("gang_grows")
    assert (grown.fields["nnodes"], grown.fields["to"]) == (2, 3), training.tale()
    again = training.events("restart_began")[-1]
    assert again.time > grown.time, training.tale()
    assert again.fields["restored_step"] >= int(grown.fields["last_step"]) - 2, training.tale()
    assert not [event for event in training.events("budget", "restart_ended") if event.time > grown.time]
    record = build_record(training.events(), {"name": training.workflow, "phase": "Succeeded"})
    assert any("Nodes were back" in line for line in story(record)), training.tale()
    training.until("nothing to be left", lambda: not training.leftovers(), 60)


def test_a_gang_that_lost_a_node_grows_when_the_node_is_back(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    tables = {
        "top": BATCH,
        "gang": f'resources.extended = {{ "{SLOT}" = "1" }}',
        "deadlines": "grow_seconds = 5",
    }
    options = {"nnodes": "2:3", "steps": 260, "seconds": 0.4, "tables": tables, "script": COUNTING}
    offer_slots(cluster)
    training = new_training(cluster, namespace, tmp_path / "run", **options)
    training.submit()
    training.until_committed(5)
    node = apart(training)
    cluster.nodes[node].kill()
    try:
        training.until("a gang of two to train", lambda: sizes(training)[-1] == 2 and len(restarts(training)) == 2)
        reached = training.committed()
        training.until_committed(reached + 12)
        assert sizes(training)[-1] == 2  # probes that find nothing change nothing
    finally:
        cluster.nodes[node].up()
        cluster.nodes[node].wait_ready()
        offer_slots(cluster)
    grew(training)


def restarts(training: Training) -> list[int]:
    return [int(event.fields["restart"]) for event in training.events("restart_began")]


@pytest.mark.variant
@pytest.mark.parametrize("gang", ['runtime = "pytorchjob"', 'runtime = "trainjob"'])
def test_whoever_makes_the_pods(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path, gang: str
) -> None:
    tables = {
        "top": BATCH,
        "gang": f'resources.extended = {{ "{SLOT}" = "1" }}\n{gang}',
        "deadlines": "grow_seconds = 5",
    }
    options = {"nnodes": "2:3", "steps": 100, "tables": tables, "script": COUNTING}
    training = new_training(cluster, namespace, tmp_path / "run", **options)
    offer_slots(cluster)
    cluster.nodes["node-c"].offer(SLOT, 0)
    try:
        training.submit()
        training.until_committed(5)
        assert sizes(training) == [3, 2], training.tale()
    finally:
        offer_slots(cluster)
    grew(training)
