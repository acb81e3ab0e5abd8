"""``argo submit FILE`` of what compiles, with data, checkpoints and code in S3 and the keys in a Secret."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.chain import Chain
from tests.cluster.client import phases
from tests.cluster.cluster import Cluster
from tests.cluster.training import new_training


def test_the_whole_chain_gives_the_same_bytes_on_argo_as_on_one_machine(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    chain = Chain(**vars(new_training(cluster, namespace, tmp_path / "run", name="stdlib-gpt", steps=30)))
    name = chain.submit()
    ended = cluster.wait_workflow(name, namespace, 400)
    assert ended["status"]["phase"] == "Succeeded", phases(ended)
    assert not chain.unfinished()
    (snapshot,) = [node for node in ended["status"]["nodes"].values() if node["displayName"] == "snapshot"]
    outputs = {row["name"]: row["value"] for row in snapshot["outputs"]["parameters"]}
    assert int(outputs["objects"]) == 8, outputs
    assert chain.final_bytes(name) == chain.final_bytes(chain.run_here())
