"""The gang in each runtime and placement: what stands beside its workload, and that the supervisor can read it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.steps.gang.manifest import check_manifest, pod_spec, with_identity
from argosy.steps.gang.runtimes import job_specs
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.placement import RENDERED, RUNTIMES, pairs_table
from argosy.workflows.spec.run import TrainingRun
from tests.compile.unfactored import loaded_all
from tests.starts import argosy

WORKLOADS = {"jobset": ["JobSet"], "job": ["Service", "Job"], "pytorchjob": ["PyTorchJob"], "tfjob": ["TFJob"],
             "xgboostjob": ["XGBoostJob"], "mpijob": ["MPIJob"], "trainjob": ["TrainingRuntime", "TrainJob"],
             "volcano": ["Job"], "rayjob": ["RayJob"]}  # fmt: skip
PLACEMENTS: dict[str, dict[str, Any]] = {
    "none": {},
    "volcano": {"priority_class": "high", "queue": "research"},
    "native": {"priority_class": "high"},
    "kueue": {"queue": "gpu", "queue_priority": "urgent"},
    "coscheduling": {},
    "kai": {"queue": "gpu"},
}
PAIRS = [(runtime, placement) for runtime, placements in RUNTIMES.items() for placement in placements]
SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler", "kai": "kai-scheduler"}
CONTAINERS = {"pytorchjob": "pytorch", "tfjob": "tensorflow", "xgboostjob": "xgboost", "mpijob": "main"}
"""Of Kubeflow's: the name of the ranks' container, which the Training Operator prescribes."""
PAGE = Path(__file__).resolve().parents[2] / "docs/gangs.md"


def documents(runtime: str, placement: str) -> list[dict[str, Any]]:
    gang = {"nnodes": "2:3", "runtime": runtime, "placement": placement, **PLACEMENTS[placement]}
    run = TrainingRun(name="llm", script="train.py", code="", gang=gang)
    return list(loaded_all(gang_yaml(run)))


@pytest.mark.parametrize(("runtime", "placement"), PAIRS)
def test_every_pair_is_a_gang_that_can_be_supervised(runtime: str, placement: str) -> None:
    made = documents(runtime, placement)
    grouped = placement in ("native", "coscheduling") or (placement == "volcano" != runtime)
    groups = ["PodGroup"] if grouped else []
    assert [each["kind"] for each in made] == [*groups, *WORKLOADS[runtime]]
    manifest = check_manifest(made, "x")
    assert (manifest.runtime.name, manifest.placement, manifest.nnodes) == (runtime, placement, 3)
    assert list(manifest.documents) == made
    assert all(each["metadata"]["name"] == "llm" for each in made)
    queued = {"kueue.x-k8s.io/queue-name": "gpu", "kueue.x-k8s.io/priority-class": "urgent"}
    workload = made[-1]
    own = {"kueue": queued, "kai": {"kai.scheduler/queue": "gpu"}}.get(placement, {})
    assert workload["metadata"]["labels"] == {"argosy.dev/run": "llm"} | own
    assert manifest.runtime.suspended(workload) is (placement == "kueue")


@pytest.mark.parametrize(("runtime", "placement"), PAIRS)
def test_pods_name_what_stands_beside_them_and_are_equal_otherwise(runtime: str, placement: str) -> None:
    beside = documents(runtime, placement)[:-1]
    manifest = check_manifest([*documents(runtime, placement)], "x")
    pod = pod_spec(manifest.runtime.pods_in(manifest.documents))
    group, domain = pod.pop("schedulingGroup", None), pod.pop("subdomain", None)
    named = {each["kind"]: each for each in beside}
    assert pod.pop("schedulerName", None) == SCHEDULERS.get(placement)
    assert (group, domain) == (
        {"podGroupName": "llm"} if placement == "native" else None,
        "llm" if "Service" in named else None,
    )
    plain = pod_spec(documents("jobset", "none")[-1])
    if placement in ("native", "volcano"):
        plain["priorityClassName"] = "high"
    if runtime in CONTAINERS:  # the operator knows the container by its name, and sets restartPolicy itself
        plain.pop("restartPolicy")
        plain["containers"][0]["name"] = CONTAINERS[runtime]
    if runtime == "rayjob":  # KubeRay's own probes ask what is not there
        probes = {pod["containers"][0].pop(name)["exec"]["command"][0] for name in ("livenessProbe", "readinessProbe")}
        assert probes == {"true"}
    assert pod == plain


@pytest.mark.parametrize("runtime", CONTAINERS)
def test_nobody_but_the_supervisor_restarts(runtime: str) -> None:
    spec = documents(runtime, "none")[-1]["spec"]
    assert spec["runPolicy"] == {"backoffLimit": 0, "cleanPodPolicy": "None"}
    (replicas,) = (value for key, value in spec.items() if key.endswith("ReplicaSpecs"))
    assert {each["restartPolicy"] for each in replicas.values()} == {"Never"}


@pytest.mark.parametrize(("runtime", "placement"), PAIRS)
def test_what_stands_beside_selects_the_pods(runtime: str, placement: str) -> None:
    *beside, workload = documents(runtime, placement)
    named = {each["kind"]: each for each in beside}
    if "Service" in named:
        service = named["Service"]["spec"]
        assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert service["selector"].items() <= labels.items()
    if "PodGroup" in named:
        high = {"priorityClassName": "high"}
        assert (
            named["PodGroup"]["spec"]
            == {
                "native": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}, **high},
                "volcano": {"queue": "research", "minMember": 2, **high},
                "coscheduling": {"minMember": 3},
            }[placement]
        )


@pytest.mark.parametrize("runtime", [each for each in RUNTIMES if "volcano" in RUNTIMES[each]])
def test_a_gang_of_volcanos_is_its_groups_also_with_fewer_nodes(runtime: str) -> None:
    manifest = check_manifest(documents(runtime, "volcano"), "x")
    for nnodes, least in ((3, 2), (1, 1)):
        made = with_identity(manifest, name="llm-a7", attempt=7, nnodes=nnodes, env={}, excluded=())
        pods = manifest.runtime.pods_in(made)
        assert manifest.runtime.nodes(pods) == nnodes
        groups = [each for each in made if each["kind"] == "PodGroup"]
        if runtime == "volcano":
            assert (groups, made[-1]["spec"]["minAvailable"], made[-1]["spec"]["queue"]) == ([], least, "research")
            continue
        assert [(each["metadata"]["name"], each["spec"]["minMember"]) for each in groups] == [("llm-a7", least)]
        for template in manifest.runtime.templates(pods):
            assert template["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "llm-a7"}


@pytest.mark.parametrize("runtime", [name for name, placements in RUNTIMES.items() if "coscheduling" in placements])
def test_coscheduling_finds_the_pods_of_a_gang_by_its_own_name(runtime: str) -> None:
    manifest = check_manifest(documents(runtime, "coscheduling"), "x")
    made = with_identity(manifest, name="g-a2", attempt=2, nnodes=2, env={}, excluded=())
    assert made[0]["spec"]["minMember"] == 2
    for template in manifest.runtime.templates(manifest.runtime.pods_in(made)):
        assert template["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "g-a2"
        assert "schedulingGroup" not in template["spec"]


@pytest.mark.parametrize(("runtime", "placement"), [pair for pair in PAIRS if pair[1] in RENDERED])
def test_what_is_rendered_only_has_no_field_that_its_schema_does_not_know(
    tmp_path: Path, runtime: str, placement: str
) -> None:
    path = tmp_path / "gang.yaml"

    def linted(text: str) -> list[tuple[str, str]]:
        path.write_text(text)
        done = argosy(tmp_path, "lint", str(path), "--json")
        found = [(each["rule"], each["message"]) for each in json.loads(done.stdout)["findings"]]
        return [each for each in found if each[0].startswith(("API", "GANG"))]

    made = "---\n".join(yaml.safe_dump(each) for each in documents(runtime, placement))
    plain = "---\n".join(yaml.safe_dump(each) for each in documents(runtime, "none"))
    assert {*linted(made)} <= {*linted(plain)}
    if placement == "coscheduling":  # the check can fail
        assert any("minMembers" in message for _, message in linted(made.replace("minMember:", "minMembers:")))


def test_the_page_has_the_table_of_the_code_that_refuses() -> None:
    text = PAGE.read_text()
    before, mark, rest = text.partition("<!-- pairs -->\n")
    _, end, after = rest.partition("<!-- end of pairs -->\n")
    assert mark
    assert end
    written = f"{before}{mark}\n{pairs_table()}\n{end}{after}"
    if os.environ.get("ARGOSY_REGENERATE") == "1":
        PAGE.write_text(written)
    assert written == PAGE.read_text(), "ARGOSY_REGENERATE=1 writes the table anew"


@pytest.mark.parametrize("runtime", ["jobset", "job"])
def test_spares_are_pods_of_the_same_job_that_outlives_lost_ones(runtime: str) -> None:
    gang = {"nnodes": 3, "runtime": runtime, "spares": 2}
    made = list(loaded_all(gang_yaml(TrainingRun(name="llm", script="train.py", code="", gang=gang))))
    manifest = check_manifest(made, "x")
    assert (manifest.nnodes, manifest.spares) == (3, 2)
    ((_, job),) = job_specs(made[-1])
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (5, 5, 20)
    without = list(loaded_all(gang_yaml(TrainingRun(name="llm", script="train.py", code="", gang={"nnodes": 5}))))
    assert job_specs(without[-1])[0][1]["backoffLimit"] == 0
    assert "annotations" not in without[-1]["metadata"]


@pytest.mark.parametrize(
    ("gang", "reason"),
    [
        ({"runtime": "volcano", "placement": "volcano"}, "runtime = 'volcano': its scheduler places all pods or none"),
        ({"runtime": "pytorchjob"}, "runtime = 'pytorchjob': its operator ends the whole gang"),
        ({"runtime": "trainjob"}, "runtime = 'trainjob': Trainer takes every pod"),
        ({"runtime": "rayjob"}, "runtime = 'rayjob': a pod that KubeRay makes for a lost one waits for Ray's head"),
        ({"placement": "native"}, "placement = 'native': its PodGroup is placed, and taken away, as a whole"),
        ({"placement": "volcano"}, "placement = 'volcano': nobody has seen its scheduler"),
        ({"placement": "coscheduling"}, "placement = 'coscheduling': nobody has seen its scheduler"),
        ({"placement": "kai", "queue": "q"}, "placement = 'kai': it counts every pod"),
        ({"nnodes": "2:3"}, "nnodes = '2:3': an elastic gang trains on every node that it gets"),
        ({"spares": 17}, "spares"),
    ],
)
def test_spares_are_refused_by_name_where_they_could_not_stand_by(gang: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        TrainingRun(name="llm", script="train.py", code="", gang={"nnodes": 2, "spares": 1} | gang)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({}, "has an effect with gang.spares only"),
        ({"gang": {"spares": 1}}, "needs a second node"),
        (
            {"gang": {"nnodes": 2, "spares": 1}, "checkpoint": {"mode": "opaque", "path": "out"}},
            "lie on the nodes' disks",
        ),
    ],
)
def test_a_copy_that_nobody_could_restore_from_is_refused(tables: dict[str, Any], reason: str) -> None:
    given = {**tables, "checkpoint": {"peer_copy": True, **tables.get("checkpoint", {})}}
    with pytest.raises(InputError, match=f"(?s)checkpoint.peer_copy.*{re.escape(reason)}"):
        TrainingRun(name="llm", script="train.py", code="", **given)
