"""Who makes the pods and who places them together: as the manifest has it, or said why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from argosy.steps.gang.manifest import GangManifest, check_manifest
from argosy.workflows.gang.documents import gang_documents
from argosy.workflows.spec.run import TrainingRun
from tests.imports.account import Account
from tests.imports.cases import FOLDER
from tests.imports.test_kinds import TRAIN, pytorch, replicas

Imported = Callable[..., tuple[dict[str, Any], Account]]
Job = Callable[..., dict[str, Any]]
POLICY = {"minAvailable": 4, "queue": "research", "priorityClass": "high", "minResources": {"cpu": "4"},
          "scheduleTimeoutSeconds": 60}  # fmt: skip


def gang_of(run: dict[str, Any]) -> GangManifest:
    return check_manifest(gang_documents(TrainingRun.model_validate(run | {"code": ""})), "imported")


def placed(run: dict[str, Any]) -> dict[str, Any]:
    """What a run says of who makes and places the pods."""
    wanted = ("runtime", "placement", "queue", "queue_priority", "priority_class", "nnodes")
    return {key: value for key, value in run["gang"].items() if key in wanted}


def with_policy(made: dict[str, Any], **policy: Any) -> dict[str, Any]:
    made["spec"]["runPolicy"] = {"schedulingPolicy": policy or POLICY}
    return made


ONE = {"replicas": 1, "container": TRAIN}
THREE = {"replicas": 3, "container": TRAIN}
MPI = {"replicas": 1, "container": {"command": ["mpirun", "-np", "3", "python", "/a/t.py"]}}


@pytest.mark.parametrize(
    ("made", "runtime"),
    [
        (pytorch(Master=ONE, Worker=THREE), "pytorchjob"),
        (replicas("TFJob", "tfReplicaSpecs", Chief=ONE, Worker=THREE), "tfjob"),
        (replicas("XGBoostJob", "xgbReplicaSpecs", Master=ONE, Worker=THREE), "xgboostjob"),
    ],
)
def test_a_policy_of_kubeflow_is_a_group_of_volcano(imported: Imported, made: dict[str, Any], runtime: str) -> None:
    run, account = imported(with_policy(made))
    assert placed(run) == {
        "runtime": runtime, "placement": "volcano", "queue": "research", "priority_class": "high", "nnodes": 4,
    }  # fmt: skip
    place = "spec.runPolicy.schedulingPolicy"
    kept = {key: account.fates_in(f"{place}.{key}") for key in ("minAvailable", "queue", "priorityClass")}
    assert kept == {key: {"kept"} for key in kept}
    assert account.fates_in(f"{place}.minResources.cpu") == {"changed"}
    group = gang_of(run).documents[0]
    assert group["spec"] == {"queue": "research", "minMember": 4, "priorityClassName": "high"}


def test_all_pods_of_an_mpi_job_are_its_nodes_and_the_launcher(imported: Imported) -> None:
    made = replicas("MPIJob", "mpiReplicaSpecs", Launcher=MPI, Worker=THREE) | {"apiVersion": "kubeflow.org/v2beta1"}
    run, account = imported(with_policy(made))
    assert placed(run)["nnodes"] == 3
    assert account.fates_in("spec.runPolicy.schedulingPolicy.minAvailable") == {"changed"}
    assert gang_of(run).documents[0]["spec"]["minMember"] == 3


def test_an_elastic_gang_keeps_its_least(imported: Imported) -> None:
    made = with_policy(pytorch(Worker=THREE), minAvailable=2, queue="q")
    made["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 3}
    run, account = imported(made)
    assert placed(run) == {"runtime": "pytorchjob", "placement": "volcano", "queue": "q", "nnodes": "2:3"}
    for key in ("elasticPolicy.minReplicas", "elasticPolicy.maxReplicas", "runPolicy.schedulingPolicy.minAvailable"):
        assert account.fates_in(f"spec.{key}") == {"kept"}
    group, _ = gang_of(run).documents
    assert group["spec"]["minMember"] == 2


def test_fewer_than_all_of_a_fixed_gang_is_said_to_be_all(imported: Imported) -> None:
    run, account = imported(with_policy(pytorch(Worker=THREE), minAvailable=2, queue="q"))
    assert placed(run)["nnodes"] == 3
    assert 'nnodes = "2:3"' in account.text_of("spec.runPolicy.schedulingPolicy.minAvailable", 0)


def test_a_number_without_anybody_who_places_is_left_to_the_author(imported: Imported) -> None:
    run, account = imported(with_policy(pytorch(Worker=THREE), minAvailable=3, priorityClass="high"))
    assert placed(run) == {"runtime": "pytorchjob", "priority_class": "high", "nnodes": 3}
    assert account.fates_in("spec.runPolicy.schedulingPolicy.minAvailable") == {"by hand"}


def test_a_job_of_volcano_stays_one(imported: Imported) -> None:
    made = yaml.safe_load((FOLDER / "volcano.yaml").read_text())
    made["spec"]["priorityClassName"] = "high"
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "other"}
    run, account = imported(made)
    assert placed(run) == {
        "runtime": "volcano", "placement": "volcano", "queue": "research", "priority_class": "high", "nnodes": 3,
    }  # fmt: skip
    for key in ("kind", "spec.queue", "spec.minAvailable", "spec.schedulerName", "spec.priorityClassName"):
        assert account.fates_in(key) == {"kept"}, key
    assert "a Volcano Job queues in Volcano" in account.why("metadata.labels")
    spec = gang_of(run).workload["spec"]
    assert {key: spec[key] for key in ("queue", "minAvailable", "priorityClassName")} == {
        "queue": "research", "minAvailable": 3, "priorityClassName": "high",
    }  # fmt: skip


GROUP = """\
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2, queue: blue, priorityClassName: high}
"""
OF_KUBERNETES = """\
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair}
spec: {schedulingPolicy: {gang: {minCount: 2}}, priorityClassName: high}
"""
OF_COSCHEDULING = """\
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: pair}
spec: {minMember: 2}
"""


def in_group(job: dict[str, Any], **pod: Any) -> dict[str, Any]:
    job["spec"]["template"]["spec"].update(pod)
    return job


def test_a_group_of_volcano_among_the_files_is_the_gangs(imported: Imported, job: Job) -> None:
    made = in_group(job(TRAIN), schedulerName="volcano")
    made["spec"]["template"]["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": "pair"}}
    run, account = imported(yaml.safe_dump(made) + GROUP)
    assert placed(run) == {
        "runtime": "job", "placement": "volcano", "queue": "blue", "priority_class": "high", "nnodes": 2,
    }  # fmt: skip
    for key in ("minMember", "queue", "priorityClassName"):
        assert account.fates_in(f"spec.{key}", 1) == {"kept"}
    assert "annotations" not in run["gang"].get("pod", {})
    assert "scheduler" not in run["gang"].get("pod", {})


def test_a_group_of_kubernetes_among_the_files_is_the_gangs(imported: Imported, job: Job) -> None:
    made = in_group(job(TRAIN), schedulingGroup={"podGroupName": "pair"})
    run, account = imported(yaml.safe_dump(made) + OF_KUBERNETES)
    assert placed(run) == {"runtime": "job", "placement": "native", "priority_class": "high", "nnodes": 2}
    assert account.fates_in("spec.schedulingPolicy.gang.minCount", 1) == {"kept"}


def test_the_queue_of_a_runtime_of_trainer_is_kept(imported: Imported) -> None:
    text = (FOLDER / "trainjob-runtime.yaml").read_text()
    marked = text.replace("{example.com/team: vision}", "{scheduling.volcano.sh/queue-name: blue}")
    text = marked.replace("{coscheduling: {scheduleTimeoutSeconds: 100}}", "{volcano: {}}")
    run, account = imported(text)
    assert placed(run) == {"runtime": "trainjob", "placement": "volcano", "queue": "blue", "nnodes": 3}
    assert account.fates_in("spec.podGroupPolicy.volcano") == {"kept"}


def test_a_group_of_coscheduling_is_the_gangs(imported: Imported, job: Job) -> None:
    made = in_group(job(TRAIN), schedulerName="scheduler-plugins-scheduler")
    made["spec"]["template"]["metadata"] = {"labels": {"scheduling.x-k8s.io/pod-group": "pair"}}
    run, account = imported(yaml.safe_dump(made) + OF_COSCHEDULING)
    assert placed(run) == {"runtime": "job", "placement": "coscheduling", "nnodes": 2}
    assert "kept spec.template.metadata.labels" in account.why("gang.placement")
    assert account.fates_in("spec.minMember", 1) == {"kept"}
    assert gang_of(run).documents[0]["spec"] == {"minMember": 2}


def test_a_queue_of_kai_is_kept_where_kai_places_whole_gangs(imported: Imported, job: Job) -> None:
    made = yaml.safe_load((FOLDER / "jobset.yaml").read_text())
    made["metadata"]["labels"] = {"kai.scheduler/queue": "team"}
    run, account = imported(made)
    assert (run["gang"]["placement"], run["gang"]["queue"]) == ("kai", "team")
    assert "kept metadata.labels" in account.why("gang.queue")
    assert gang_of(run).placement == "kai"
    run, account = imported(job(TRAIN) | {"metadata": {"name": "j", "labels": {"kai.scheduler/queue": "team"}}})
    assert placed(run) == {"runtime": "job", "nnodes": 2}
    assert "not representable metadata.labels" in account.why("a group of its own")


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("key", ["job-name", "batch.kubernetes.io/job-name"])
def test_an_affinity_to_a_controllers_label_is_left_to_the_author(
    imported: Imported, job: Job, kind: str, key: str
) -> None:
    """The gang has its own name there: it would be kept apart from nobody, or wait for a pod that never comes."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {key: "job"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    other = {"podAffinity": "podAntiAffinity", "podAntiAffinity": "podAffinity"}[kind]
    kept = {required: [term | {"labelSelector": {"matchLabels": {"app": "cache"}}}]}
    made = job(TRAIN, affinity={kind: {required: [term]}, other: kept})
    made["spec"]["template"]["metadata"] = {"labels": {key: "job"}}
    kept[required].append(term | {"labelSelector": {"matchLabels": {key: "another"}}})  # which keeps its name
    run, account = imported(made)
    assert run["gang"]["pod"] == {"affinity": {other: kept}}
    place = "spec.template.spec.affinity"
    assert account.fates_in(f"{place}.{kind}") == {"by hand"}
    assert account.fates_in(f"{place}.{other}") == {"kept"}
