"""A Checkpointer's snapshot outlives its ranks in real pods: what is started anew asks the store for little."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.faults import rank_killed
from tests.cluster.training import new_training

SCRIPT = """\
import sys, time
import torch, torch.distributed as dist
from argosy import Checkpointer, report
steps, seconds = int(sys.argv[1]), float(sys.argv[2])
dist.init_process_group("gloo")
saver = Checkpointer()
state = {name: torch.zeros(500_000) for name in "vw"}  # each rank saves one
found = saver.restore(into=state)
for step in range(found.step + 1 if found else 1, steps + 1):
    time.sleep(seconds)
    dist.barrier()
    for each in state.values():
        each += 1
        assert each.eq(step).all(), "other bytes than were saved"
    if step % 10 == 0:
        saver.save(step, state, final=step == steps)
    report(step, loss=1 / step, end_step=steps)
dist.destroy_process_group()
"""
BYTES = 2 * 500_000 * 4


def test_what_the_pods_hold_is_not_asked_of_the_store(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(
        cluster, namespace, tmp_path / "run", script=SCRIPT, args=("60", "0.3"), steps=60,
        tables={"checkpoint": 'mode = "checkpointer"'},
    )  # fmt: skip
    training.submit()
    training.until_committed(20)
    rank_killed(training)
    assert training.ended() == "Succeeded", training.tale()
    assert training.committed() == 60, training.tale()
    told = [event.fields for event in training.events("restored")]
    assert sorted(each["rank"] for each in told) == [0, 1], training.tale()
    for each in told:
        assert each["bytes"] > BYTES
        assert each["fetched_bytes"] < 20_000, "only the small files, which never lay there"
