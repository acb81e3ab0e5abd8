"""Gangs with a spare on a real cluster: the ranks go on in the same gang, and the Job makes the next spare."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.training import Training, new_training, now


def standing(training: Training) -> list[str]:
    """The pods that were ever ready to take over, in that order."""
    return [event.fields["pod"] for event in training.events("standing_by") if event.fields["ready"]]


def until_standing(training: Training, times: int = 1) -> str:
    """The ``times``-th of them."""
    training.until(f"{times} spares that are ready", lambda: len(standing(training)) >= times)
    return standing(training)[times - 1]


def lost(training: Training, spare: str) -> str:
    """Delete a pod that has a rank; its name."""
    name = next(pod["metadata"]["name"] for pod in training.pods() if pod["metadata"]["name"] != spare)
    training.kubectl("delete", "pod", name, "--wait=false")
    return str(name)


SAVES = """\
import sys, time, torch, torch.distributed as dist
from argosy import Checkpointer, report
dist.init_process_group("gloo")
saver, end = Checkpointer(), int(sys.argv[1])
state = {name: torch.zeros(250_000) for name in "vw"}  # each rank saves one
found = saver.restore(into=state)
first = found.step + 1 if found else 1
for each in state.values():
    assert torch.equal(each, torch.full((250_000,), float(sum(range(1, first))))), "other bytes than were saved"
for step in range(first, end + 1):
    time.sleep(0.5)
    dist.barrier()
    for each in state.values():
        each += step
    if step % 10 == 0:  # seldom: in the midst of a save nobody has the one before in memory
        saver.save(step, state, final=step == end, wait=True)
    report(step, loss=1 / step, end_step=end)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("runtime", ["jobset", pytest.param("job", marks=pytest.mark.variant)])
def test_a_spare_takes_over_and_the_next_one_comes(
    cluster: Cluster, namespace: str, tmp_path: Path, runtime: str
) -> None:
    tables = {"gang": f'runtime = "{runtime}"\nspares = 1\npreload = ["torch"]', "checkpoint": "peer_copy = true"}
    training = new_training(cluster, namespace, tmp_path / "run", steps=120, tables=tables, script=SAVES, args=("120",))
    training.submit()
    training.until_committed(3)
    first = until_standing(training)
    gone = lost(training, first)
    training.until("the spare to take over", lambda: training.events("took_over"))
    second = until_standing(training, 2)
    lost(training, second)
    assert training.ended() == "Succeeded", training.tale()
    assert training.committed() == 120, training.tale()
    told = [event.fields for event in training.events("took_over")]
    assert [each["pod"] for each in told] == [first, second], training.tale()
    assert told[0]["from_pod"] == gone
    restored = training.events("restored")[0].fields
    assert restored["bytes"] > 2_000_000 > 100_000 > restored["fetched_bytes"], "the other pod kept a copy"
    assert len(training.events("gang_created")) == 1, training.tale()
    training.until("nothing to be left", lambda: not training.leftovers(), 60)


def power_off(training: Training, spare: str) -> str:
    """The node of a pod that has a rank loses its power, one without the supervisor; its name."""
    busy = {pod["spec"].get("nodeName") for pod in training.pods(role="supervisor")}
    ranks = [pod for pod in training.pods() if pod["metadata"]["name"] != spare]
    node = next(str(pod["spec"]["nodeName"]) for pod in ranks if pod["spec"]["nodeName"] not in busy)
    training.cluster.nodes[node].kill()
    return node


@pytest.mark.variant
def test_a_node_without_power_costs_no_new_gang(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(cluster, namespace, tmp_path / "run", steps=60, tables={"gang": "spares = 1"})
    training.submit()
    training.until_committed(3)
    spare, since = until_standing(training), now()
    node = power_off(training, spare)
    try:
        training.until("the spare to take over", lambda: training.events("took_over"))
    finally:
        cluster.nodes[node].up()
        cluster.nodes[node].wait_ready()
    assert training.ended() == "Succeeded", training.tale()
    assert [event.fields["pod"] for event in training.events("took_over")] == [spare], training.tale()
    assert len(training.events("gang_created")) == 1, training.tale()
    print(f"a node without power: {training.account(since)}")
    training.until("nothing to be left", lambda: not training.leftovers(), 60)
