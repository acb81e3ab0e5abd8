"""A manifest and what became of its import, given to the same real controller: the pods that it makes are the same."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.gang.manifest import check_manifest, with_identity
from tests.cluster.cluster import Cluster
from tests.cluster.made import OURS, RANKS, SSH, differences, facts
from tests.cluster.progress import wait_for
from tests.cluster.training import ARGOSY
from tests.imports.cases import FOLDER

Manifest = dict[str, Any]
LAUNCHER = "launcher"
PRIORITY = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "research"}, "value": 1}


@dataclass(frozen=True)
class Trip:
    """``pods``: how many of the original are nodes of the gang, ``beside``: how many are none (MPI's launcher)."""

    file: str
    pods: int
    edit: Callable[[list[Manifest]], None] = lambda documents: None
    beside: int = 0
    further: tuple[str, ...] = ()


def without_chief(documents: list[Manifest]) -> None:
    """Of a Chief with 0 replicas the operator makes a pod all the same."""
    del documents[-1]["spec"]["tfReplicaSpecs"]["Chief"]


def unqueued(documents: list[Manifest]) -> None:
    """No LocalQueue is there; a queue is tried by the placements of test_runtimes.py."""
    del documents[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]


def in_a_namespace_of_its_own(documents: list[Manifest]) -> None:
    unqueued(documents)
    documents[-1]["metadata"].pop("namespace")
    policy = documents[-1]["spec"]["runPolicy"].pop("schedulingPolicy")
    assert policy  # the operator runs without a gang scheduler: it would ignore it


def without_gpus(documents: list[Manifest]) -> None:
    """Volcano makes no pods for which no node has room."""
    for task in documents[-1]["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "100m", "memory": "2Gi"}}
    documents[-1]["spec"]["queue"] = "default"


def workers_only(documents: list[Manifest]) -> None:
    unqueued(documents)
    del documents[-1]["metadata"]["annotations"]  # exclusive: JobSet waits for nodes before it makes further pods
    jobs = documents[-1]["spec"]["replicatedJobs"]
    documents[-1]["spec"]["replicatedJobs"] = [each for each in jobs if each["name"] == "workers"]


def without_initializer(documents: list[Manifest]) -> None:
    """It would have to end before Trainer makes the others; and nobody places by coscheduling here."""
    runtime, job = documents
    del job["spec"]["initializer"], runtime["spec"]["podGroupPolicy"]
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = jobs[1:]
    del jobs[1]["dependsOn"]


def only_the_job(documents: list[Manifest]) -> None:
    documents[:] = [each for each in documents if each["kind"] in ("Job", "ConfigMap")]
    del documents[-1]["spec"]["template"]["metadata"]["labels"]["job-name"]  # must be the Job's own


WRITTEN = {
    "pytorchjob": r"env/(OMP_\w+|TOKENIZERS_\w+|HF_TOKEN|POD_IP)|envFrom|(label|annotation)/(app|sidecar.*)",
    "mpijob": "env/(NCCL_DEBUG|BERT_CACHE|LD_LIBRARY_PATH)",
    "jobset": "env/(LD_LIBRARY_PATH|OMP_NUM_THREADS)",
    "job": "env/(WANDB_MODE|MODE|DATASET|CACHE)|envFrom|label/role",
    "volcano": "env/ACCELERATE_MIXED_PRECISION|mount//etc/volcano.*",
}
"""What import writes out or leaves out, and says so: variables of the command, of ConfigMaps, of Secrets, marks."""
EACH_TIME = ("pytorchjob-elastic.yaml", "volcano.yaml")
"""Elsewhere only in make prove SUITE=variants."""
TRIPS = (
    Trip("pytorchjob.yaml", 4, in_a_namespace_of_its_own, further=(RANKS, WRITTEN["pytorchjob"])),
    Trip("pytorchjob-elastic.yaml", 4, further=(RANKS,)),
    Trip("tfjob.yaml", 2, without_chief),
    Trip("xgboostjob.yaml", 3),
    Trip("mpijob-v2beta1.yaml", 2, beside=1, further=(SSH, WRITTEN["mpijob"])),
    Trip("trainjob-runtime.yaml", 3, without_initializer, further=(RANKS,)),
    Trip("jobset.yaml", 2, workers_only, further=(WRITTEN["jobset"],)),
    Trip("indexed-job.yaml", 2, only_the_job, further=(WRITTEN["job"],)),
    Trip("volcano.yaml", 3, without_gpus, further=(RANKS, WRITTEN["volcano"])),
)


@pytest.mark.parametrize(
    "trip",
    [
        pytest.param(each, id=each.file.partition(".")[0], marks=[] if each.file in EACH_TIME else pytest.mark.variant)
        for each in TRIPS
    ],
)
def test_the_controller_makes_the_same_pods(cluster: Cluster, operators: set[str], tmp_path: Path, trip: Trip) -> None:
    if trip.file == "volcano.yaml" and "volcano" not in operators:
        pytest.skip("Volcano's programs are nowhere, and cannot be built")
    documents = list(yaml.safe_load_all((FOLDER / trip.file).read_text()))
    trip.edit(documents)
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump_all(documents))
    for words in (["import", "theirs.yaml", "-o", "run.toml"], ["compile", "run.toml", "-o", "run.yaml"]):
        done = subprocess.run([*ARGOSY, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    workflow = yaml.safe_load((tmp_path / "run.yaml").read_text())
    train = next(each for each in workflow["spec"]["templates"] if each["name"] == "train")
    gang = check_manifest([*yaml.safe_load_all(train["inputs"]["artifacts"][0]["raw"]["data"])], "run.yaml")
    compiled = with_identity(gang, name="ours", attempt=1, nnodes=gang.nnodes, env={}, excluded=())
    assert gang.nnodes == trip.pods
    theirs = made(cluster, "theirs", documents, trip.pods + trip.beside)
    ours = made(cluster, "ours", compiled, trip.pods)
    allowed = (*OURS, *trip.further)
    found = [differences(one, other, allowed) for one, other in zip(theirs, ours, strict=True)]
    assert found == [[]] * trip.pods


def made(cluster: Cluster, name: str, documents: list[Manifest], count: int) -> list[dict[str, str]]:
    """The facts of the pods that the workload gets under that name, but for MPI's launcher, in the order of names."""
    documents = copy.deepcopy(documents)
    for document in documents:
        if document["kind"] not in ("ConfigMap", "ClusterTrainingRuntime"):
            document["metadata"]["name"] = name
            document["metadata"].pop("generateName", None)
    with cluster.namespace("trip") as namespace, ExitStack() as afterwards:
        # A manifest from before may want what *restricted* refuses; ours are tried under it by test_strict.py.
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        cluster.api.apply(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}]
        )
        cluster.api.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}}], namespace)
        cluster.api.apply([PRIORITY])
        for document in documents:
            cluster.api.create(document, namespace)
            if document["kind"] == "ClusterTrainingRuntime":
                named = document["apiVersion"], document["kind"], document["metadata"]["name"]
                afterwards.callback(cluster.api.delete, *named)
        found: list[Manifest] = []

        def are_there() -> bool:
            found[:] = cluster.api.list("v1", "Pod", namespace)
            return len(found) == count

        wait_for(f"{count} pods of {name}", are_there, 180)
    found.sort(key=lambda pod: str(pod["metadata"]["name"]))
    return [
        facts(pod, name) for pod in found if not (name == "theirs" and LAUNCHER in pod["metadata"]["labels"].values())
    ]
