"""Every runtime on its real controller: it trains, a rank and then a pod are lost, it goes on, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.cluster.connecting import connect
from argosy.steps.cluster.containers import main_container
from argosy.steps.cluster.kinds import NOT_SEEN_YET, TRAIN_JOB, Kind
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.gang.kubernetes import KubernetesHost
from argosy.steps.gang.manifest import check_manifest, with_identity
from argosy.steps.gang.runtimes import RUNTIMES, Runtime
from argosy.workflows.gang.documents import gang_documents
from argosy.workflows.spec.load import load_run
from argosy.workflows.spec.placement import RUNTIMES as BUILT
from tests.cluster.cluster import Cluster
from tests.cluster.contention import QUEUE, SLOT, Contention, local_queue, offer_slots
from tests.cluster.faults import rank_killed
from tests.cluster.progress import wait_for
from tests.cluster.scripts import OVER_MPI
from tests.cluster.training import ARGOSY, OPAQUE, Training, new_training
from tests.examples.boosted import EXAMPLE as XGBOOST
from tests.examples.boosted import boosted

FURTHER = [each for each in RUNTIMES if each.name not in ("jobset", "job")]
ELSEWHERE = ("tfjob", "xgboostjob", "mpijob")
"""PyTorchJob's operator runs them too; xgboost and mpirun have a test of their own below."""
SHORT = """\
import os, pathlib, time
for step in range(1, 5):
    time.sleep(0.5)
    if os.environ["RANK"] == "0":
        print(f"step {step} loss {1 / step}")
        pathlib.Path("out").mkdir(exist_ok=True)
        pathlib.Path("out/state.json").write_text(str(step))
"""
"""Without torch: it starts at once."""
BESIDE = "services,secrets,configmaps,serviceaccounts,roles.rbac.authorization.k8s.io"
"""What operators make for a workload of theirs."""


def beside(training: Training) -> set[str]:
    found = training.kubectl("get", BESIDE, "-o", "name").split()
    return {name for name in found if "/argosy-channel-" not in name}  # these go with the workflow


def test_all_that_are_built_are_tried() -> None:
    assert {each.name for each in RUNTIMES} == {name for name, placements in BUILT.items() if placements}


@pytest.mark.parametrize(
    "runtime",
    [pytest.param(each, id=each.name, marks=pytest.mark.variant if each.name in ELSEWHERE else []) for each in FURTHER],
)
def test_it_trains_and_goes_on_after_a_lost_rank_and_a_lost_pod(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path, runtime: Runtime
) -> None:
    if runtime.name == "volcano" and "volcano" not in operators:
        pytest.skip("Volcano's programs are nowhere, and cannot be built")
    tables = {"gang": f'runtime = "{runtime.name}"\nplacement = "{BUILT[runtime.name][0]}"'}
    training = new_training(cluster, namespace, tmp_path / "run", steps=80, seconds=0.4, tables=tables)
    before = beside(training)
    training.submit()
    training.until_committed(3)
    rank_killed(training)
    training.until("a second start", lambda: len(training.events("restart_began")) == 2)
    (workload,) = json.loads(training.kubectl("get", named(runtime.kind), "-o", "json"))["items"]
    assert workload["metadata"]["ownerReferences"][0]["kind"] == "Workflow"
    lost = max(training.pods(), key=lambda pod: pod["metadata"]["name"])["metadata"]["name"]
    # Its controller makes another of the same name at once, where it does not add a random ending.
    training.kubectl("delete", "pod", lost, "--wait=false", "--grace-period=0", "--force")
    training.until("a second gang", lambda: len(training.events("restart_began")) == 3)
    training.until_committed(training.committed() + 1)
    pods = {pod["metadata"]["name"]: main_container(pod) for pod in training.pods()}
    assert len(pods) == 2
    (container,) = {*pods.values()}
    words = ("logs", training.workflow, "--no-color", "-c", container)
    for said in (logs(training), cluster.argo(*words, namespace=namespace)):
        for rank, name in enumerate(sorted(pods)):  # a Launcher or Master comes before the Workers
            assert re.search(rf"{name}( \||:) \[rank {rank}\] step \d+ loss", said), said
    assert training.ended() == "Succeeded", training.tale()
    assert len(training.events("gang_created")) == 2, training.tale()
    killed, deleted = (event.fields for event in training.events("restart_ended"))
    assert (killed["rank"], killed["signal"]) == (1, 9), training.tale()
    assert deleted["cause"] in ("preempted_evicted", "sigterm"), training.tale()
    kinds = [named(kind) for kind in (runtime.kind, runtime.holder) if kind is not None]
    training.until("nothing to be left", lambda: not training.leftovers(*kinds) and beside(training) == before, 60)


def queued(cluster: Cluster, namespace: str, folder: Path, runtime: str) -> Training:
    gang = f'runtime = "{runtime}"\nlauncher = "plain"\nplacement = "kueue"\nqueue = "{QUEUE}"'
    return Training(cluster, namespace, folder / runtime, name=runtime, script=SHORT, tables={"gang": gang})


def test_kueue_admits_a_rayjob(cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path) -> None:
    """KubeRay makes pods again that have ended, until the RayJob is deleted; so it is looked at alone."""
    cluster.create_bucket(namespace)
    cluster.create_s3_secret(namespace)
    contention = Contention([queued(cluster, namespace, tmp_path, "rayjob")])
    with local_queue(cluster, namespace, {"cpu": "1", "memory": "5Gi"}):
        contention.run(600)
    assert contention.created == [1]


def test_kueue_admits_one_gang_of_each_other_runtime_after_the_other(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path
) -> None:
    cluster.create_bucket(namespace)
    cluster.create_s3_secret(namespace)
    others = [each.name for each in FURTHER if "kueue" in BUILT[each.name] and each.name != "rayjob"]
    trainings = [queued(cluster, namespace, tmp_path, name) for name in others]
    contention = Contention(trainings)
    with local_queue(cluster, namespace, {"cpu": "1", "memory": "5Gi"}):  # a gang wants 4
        contention.run(600)
    assert not contention.both_held
    assert contention.created == [1] * len(trainings)
    waits = [[event.fields for event in training.events("gang_waits")] for training in trainings]
    said = [" ".join(str(each["why"]) for each in found if each["phase"] == "queued") for found in waits]
    # In Kueue's own words; the first may be admitted before anybody asked.
    assert sum("quota" in why or "PodsReady" in why for why in said) >= 3, said


def test_volcano_binds_the_gang_of_another_runtime(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path
) -> None:
    if "volcano" not in operators:
        pytest.skip("Volcano's programs are nowhere, and cannot be built")
    gang = 'runtime = "pytorchjob"\nlauncher = "plain"\nplacement = "volcano"'
    tables = {"gang": f'{gang}\nresources.extended = {{ "{SLOT}" = "1" }}'}
    training = new_training(
        cluster, namespace, tmp_path / "run", name="bound", nnodes="2:3", tables=tables, script=SHORT
    )
    groups = "podgroups.scheduling.volcano.sh"

    def waits(phase: str) -> list[str]:
        return [each.fields["why"] for each in training.events("gang_waits") if each.fields["phase"] == phase]

    def bound() -> int:
        return sum(bool(pod["spec"].get("nodeName")) for pod in training.pods())

    offer_slots(cluster)
    try:
        for name in ("node-b", "node-c"):
            cluster.nodes[name].offer(SLOT, 0)
        training.submit()
        training.until("Volcano's word", lambda: any(waits("queued")))
        assert (len(training.pods()), bound()) == (3, 0), training.tale()
        cluster.nodes["node-b"].offer(SLOT, 1)
        training.until("the least to be bound", lambda: bound() == 2)
        training.until("a gang of so many", lambda: len(training.events("gang_created")) == 2)
        assert training.ended(300) == "Succeeded", training.tale()
    finally:
        offer_slots(cluster)
    assert [event.fields["nnodes"] for event in training.events("gang_created")] == [3, 2], training.tale()
    training.until("nothing to be left", lambda: not training.leftovers(groups, "pytorchjobs"), 60)


def test_xgboost_on_its_own_operator_is_killed_and_ends_with_the_same_model(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path
) -> None:
    rounds = ("--rows", "400000", "--rounds", "300")
    tables = {
        "gang": 'runtime = "xgboostjob"\nlauncher = "plain"',
        "checkpoint": f'{OPAQUE}include = ["*.ubj"]\nunit = ["*.ubj"]',
    }
    script = (XGBOOST / "train.py").read_text()
    training = new_training(
        cluster, namespace, tmp_path / "run", name="boosted", tables=tables, script=script, args=rounds
    )
    training.submit()
    training.until_committed(10)
    rank_killed(training)
    assert training.ended(600) == "Succeeded", training.tale()
    (killed,) = (event.fields for event in training.events("restart_ended"))
    assert (killed["rank"], killed["signal"]) == (1, 9), training.tale()
    first, second = (event.fields["restored_step"] for event in training.events("restart_began"))
    assert first == 0 < int(second) < 300
    with training.store() as store:
        newest = CheckpointStore(store, f"boosted/runs/{training.workflow}").newest()
    assert newest is not None
    (model,) = newest.files
    assert model.sha256 == boosted(tmp_path, 300, *rounds)


def test_mpirun_on_its_own_operator_is_killed_and_goes_on(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path
) -> None:
    tables = {"gang": 'runtime = "mpijob"\nlauncher = "mpirun"\nnproc_per_node = 2'}
    training = new_training(
        cluster, namespace, tmp_path / "run", name="mpi", tables=tables, script=OVER_MPI, args=("60", "0.5")
    )
    training.submit()
    training.until_committed(3)
    rank_killed(training)
    training.until("a second start", lambda: len(training.events("restart_began")) == 2)
    training.until_committed(training.committed() + 1)
    said, pods = logs(training), sorted(pod["metadata"]["name"] for pod in training.pods())
    for rank in range(4):  # each in the log of its own pod, and known to MPI by the pod's host name
        pod, host = pods[rank // 2], training.workflow + "-[0-9a-f]+-a1-" + ("launcher" if rank < 2 else "worker-0")
        assert re.search(rf"{pod}( \||:) \[rank {rank}\] step \d+ loss \S+ of rank {rank} on {host}", said), said
    assert training.ended(600) == "Succeeded", training.tale()
    (killed,) = (event.fields for event in training.events("restart_ended"))
    assert killed["rank"] in (2, 3), training.tale()  # both of that node were
    assert killed["signal"] == 9, training.tale()
    first, second = (event.fields["restored_step"] for event in training.events("restart_began"))
    assert first == 0 < int(second) < 60


def test_a_training_runtime_that_the_webhook_does_not_know_yet_is_waited_for(
    cluster: Cluster, operators: set[str], namespace: str, tmp_path: Path
) -> None:
    training = new_training(cluster, namespace, tmp_path / "run", tables={"gang": 'runtime = "trainjob"'})
    training.compile()
    documents = gang_documents(load_run(training.folder / "run.toml"))
    manifest = check_manifest(documents, "gang")
    given = {"name": "late", "attempt": 1, "nnodes": 2, "env": {}, "excluded": ()}
    runtime, trainjob = with_identity(manifest, **given)
    api = connect(kubeconfig=str(cluster.kubeconfig), namespace=namespace)
    host = KubernetesHost(api, manifest, Owner(name="", uid="nobody"))
    refusals = []

    def refused() -> bool:
        try:
            api.create(trainjob, dry_run=True)
        except StepError as error:
            refusals.append(str(error))
        return len(refusals) >= 5  # of which the host has met some, too

    try:
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(host.put, [{**trainjob, "spec": {**trainjob["spec"], "suspend": True}}])
            wait_for("the webhook to refuse it", refused, 60)
            assert all(NOT_SEEN_YET.search(each) for each in refusals), refusals
            assert not made.done(), made.exception()
            api.create(runtime)
            made.result(60)
        assert api.get(TRAIN_JOB, "late") is not None
    finally:
        host.close()


def named(kind: Kind) -> str:
    return f"{kind.plural}.{kind.api_version.partition('/')[0]}"


def logs(training: Training) -> str:
    """``argosy logs``, as from a laptop that knows the cluster and the bucket."""
    command = [*ARGOSY, "logs", training.workflow, "-n", training.namespace]
    environment = {**os.environ, **training.environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
