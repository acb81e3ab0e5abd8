"""A slow cable between real nodes, found before the first step."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cluster import network
from tests.cluster.cluster import Cluster
from tests.cluster.training import ARGOSY, new_training

SLOW = "node-b"


def test_a_node_with_a_slow_cable_is_left_out(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Its bytes arrive, its connections open, kubelet and API server are content: only the training would crawl."""
    tables = {"gang": 'preflight = "enforce"'}
    training = new_training(cluster, namespace, tmp_path / "run", steps=5, nnodes=3, tables=tables)
    network.limit(cluster.instance, SLOW, "40mbit")
    try:
        training.submit()
        assert training.ended() == "Succeeded", training.tale()
    finally:
        network.limit(cluster.instance, SLOW, None)
    first, second = training.events("preflight")
    assert first.fields["flaws"][0].startswith(f"{SLOW} exchanges at most 0.00"), first
    assert first.fields["summary"].startswith("3 of 3 links between 3 nodes work"), first
    assert second.fields["flaws"] == []
    assert [event.fields["node"] for event in training.events("node_excluded")] == [SLOW]
    (failed,) = training.events("restart_ended")
    assert (failed.fields["cause"], failed.fields["last_step"]) == ("nccl_ib_error", 0), failed
    assert f"preflight: {SLOW} exchanges" in failed.fields["quote"]
    print(f"preflight: {first.fields['seconds']} s and {second.fields['seconds']} s")


def test_bench_comm_shows_what_a_slow_cable_carries(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(cluster, namespace, tmp_path / "run", nnodes=3)
    training.compile()
    sizes = ("--op", "all_reduce", "--min-bytes", "65536", "--max-bytes", "4194304", "--factor", "8")
    command = [*ARGOSY, "bench-comm", "run.toml", *sizes, "-o", "bench.yaml"]
    subprocess.run(command, cwd=training.folder, env=training.environment, check=True, capture_output=True)
    network.limit(cluster.instance, SLOW, "40mbit")
    try:
        training.workflow = cluster.submit(training.folder / "bench.yaml", namespace)
        assert training.ended() == "Succeeded", training.tale()
    finally:
        network.limit(cluster.instance, SLOW, None)
    uri = f"{training.bucket}/store/hurt-bench-comm/runs/{training.workflow}"
    command = [*ARGOSY, "checkpoint", "get", uri, "bench"]
    subprocess.run(command, cwd=training.folder, env=training.environment, check=True, capture_output=True)
    found = json.loads((training.folder / "bench/result.json").read_text())
    assert (found["ranks"], found["nodes"], found["stopped"]) == (3, 3, "")
    assert [row["bytes"] for row in found["rows"]] == [65532, 524280, 4194300]  # three ranks have as many numbers each
    assert 0.0005 < found["rows"][-1]["busbw"] < 0.01, found  # 40 Mbit/s are 0.005 GB/s
    assert (training.folder / "bench/result.svg").read_text().startswith("<svg")
