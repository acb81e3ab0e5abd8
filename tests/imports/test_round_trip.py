"""A manifest of every kind becomes a run that compiles, and what its pods had the gang's pods have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hera.workflows import models as m

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.gang.manifest import GangManifest, check_manifest
from argosy.workflows.engine.support import load_checked
from tests.imports.account import Account
from tests.imports.cases import CASES, FOLDER, Case
from tests.strange import strange

Argosy = Callable[..., tuple[int, str, str]]
OPERATORS = ("kueue.x-k8s.io/", "job-name", "app")


def compiled(argosy: Argosy, manifest: Path) -> Path:
    for command in (("import", str(manifest), "-o", "run.toml", "--force"), ("compile", "run.toml", "-o", "run.yaml")):
        code, _, err = argosy(*command)
        assert code == 0, err
    return Path("run.yaml")


def gang_of(workflow: Path) -> GangManifest:
    document = yaml.safe_load(workflow.read_text())
    train = next(each for each in document["spec"]["templates"] if each["name"] == "train")
    return check_manifest([*yaml.safe_load_all(train["inputs"]["artifacts"][0]["raw"]["data"])], str(workflow))


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    assert isinstance(request.param, Case)
    return request.param


@pytest.fixture
def gang(case: Case, argosy: Argosy) -> GangManifest:
    return gang_of(compiled(argosy, case.path))


def pod_of(gang: GangManifest) -> dict[str, Any]:
    return gang.runtime.template(gang.runtime.pods_in(gang.documents), 0)


def test_image_and_command_are_kept(case: Case, gang: GangManifest) -> None:
    given = case.pod_spec()["containers"][case.container]
    (main,) = pod_of(gang)["spec"]["containers"]
    assert main["image"] == given["image"]
    launch = LaunchArgs.from_argv(main["args"])
    assert (launch.script or launch.module, *launch.arg) == case.argv
    assert (gang.runtime.name, gang.nnodes) == (case.runtime, case.nodes)
    assert launch.nproc_per_node == case.ranks
    if case.folder:
        assert launch.workdir == case.folder


def test_the_environment_is_kept(case: Case, gang: GangManifest) -> None:
    given = case.pod_spec()["containers"][case.container].get("env", [])
    expected = {each["name"]: each["value"] for each in given if "value" in each and each["name"] not in case.not_env}
    expected |= dict(case.env)
    main = pod_of(gang)["spec"]["containers"][0]
    found = {each["name"]: each.get("value") for each in main["env"]}
    assert {name: found.get(name) for name in expected} == expected


def test_resources_are_kept(case: Case, gang: GangManifest) -> None:
    given = case.pod_spec()["containers"][case.container].get("resources", {})
    found = pod_of(gang)["spec"]["containers"][0]["resources"]
    limits = {name: str(value) for name, value in given.get("limits", {}).items() if name != "cpu"}
    assert {name: found["limits"].get(name) for name in limits} == limits
    cpu = given.get("requests", {}).get("cpu", given.get("limits", {}).get("cpu"))
    assert cpu is None or found["requests"]["cpu"] == str(cpu)
    assert set(found["limits"]) == set(limits) | {"memory"}


def test_volumes_are_kept(case: Case, gang: GangManifest) -> None:
    pod, spec = case.pod_spec(), pod_of(gang)["spec"]
    sources = {volume["name"]: {k: v for k, v in volume.items() if k != "name"} for volume in pod.get("volumes", [])}
    found = {volume["name"]: {k: v for k, v in volume.items() if k != "name"} for volume in spec["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    for mount in pod["containers"][case.container].get("volumeMounts", []):
        path = mount["mountPath"].rstrip("/")
        source = sources[mount["name"]]
        if path == "/dev/shm":
            size = source["emptyDir"].get("sizeLimit", "1Gi")
            assert found["shm"] == {"emptyDir": {"medium": "Memory", "sizeLimit": size}}
            continue
        ours = mounts[path]
        assert found[ours["name"]] == source
        assert ours.get("subPath") == mount.get("subPath")
        assert ours.get("readOnly", False) == mount.get("readOnly", False)


def test_scheduling_and_marks_are_kept(case: Case, gang: GangManifest) -> None:
    pod, found = case.pod_spec(), pod_of(gang)
    assert found["spec"].get("affinity") == pod.get("affinity")
    assert found["spec"].get("nodeSelector") == pod.get("nodeSelector")
    ours = [{"operator": "Equal", **each} for each in found["spec"]["tolerations"]]
    for toleration in pod.get("tolerations", []):
        assert {"operator": "Equal", **toleration} in ours
    # Who names no account gets the one that `argosy install` makes.
    assert found["spec"]["serviceAccountName"] == pod.get("serviceAccountName", "argosy")
    for ours_name in ("priorityClassName", "imagePullSecrets", "hostNetwork"):
        assert found["spec"].get(ours_name) == pod.get(ours_name)
    grace = pod.get("terminationGracePeriodSeconds")
    assert grace is None or found["spec"]["terminationGracePeriodSeconds"] >= grace


@pytest.mark.parametrize(
    ("file", "labels", "annotations"),
    [
        (
            "pytorchjob.yaml",
            {"cost-centre": "research", "sidecar.istio.io/inject": "false"},
            {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        ),
        ("indexed-job.yaml", {"role": "train"}, {}),
        ("trainjob-runtime.yaml", {}, {"example.com/team": "vision"}),
    ],
)
def test_labels_and_annotations_are_kept(
    argosy: Argosy, file: str, labels: dict[str, str], annotations: dict[str, str]
) -> None:
    metadata = pod_of(gang_of(compiled(argosy, FOLDER / file)))["metadata"]
    assert metadata["labels"].items() >= labels.items()
    assert metadata.get("annotations", {}).items() >= annotations.items()
    assert not [key for key in metadata["labels"] if key.startswith(OPERATORS)]


def test_an_annotation_of_several_lines_arrives_as_it_was(argosy: Argosy) -> None:
    (given,) = [
        each["template"]["spec"]["template"]["metadata"]["annotations"]
        for each in yaml.safe_load((FOLDER / "jobset.yaml").read_text())["spec"]["replicatedJobs"]
        if each["name"] == "workers"
    ]
    metadata = pod_of(gang_of(compiled(argosy, FOLDER / "jobset.yaml")))["metadata"]
    assert metadata["annotations"] == given


@pytest.mark.parametrize("file", sorted(each.name for each in FOLDER.iterdir()))
def test_what_is_compiled_is_valid_strictly(argosy: Argosy, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("HF", "WANDB"):  # the engine on one machine takes a Secret's keys from its own environment
        monkeypatch.setenv(f"ARGOSY_SECRET_{secret}_TOKEN", "x")
    workflow = compiled(argosy, FOLDER / file)
    document = yaml.safe_load(workflow.read_text())
    assert list(strange(document, m.Workflow, file)) == []
    pod = pod_of(gang_of(workflow))["spec"]
    for model, key in ((m.Container, "containers"), (m.Volume, "volumes"), (m.Toleration, "tolerations")):
        for value in pod[key]:
            assert list(strange(value, model, key)) == []
            model.model_validate(value)
    m.Affinity.model_validate(pod.get("affinity", {}))
    load_checked(workflow.read_bytes(), [], {})
    code, out, err = argosy("lint", str(workflow), "--level", "error", "--format", "json")
    assert code == 0, f"{out}{err}"
    assert [each for each in json.loads(out)["findings"] if each["level"] == "error"] == []


@pytest.mark.parametrize("file", sorted(each.name for each in FOLDER.iterdir()))
def test_every_value_has_one_fate(imported: Callable[..., tuple[dict[str, Any], Account]], file: str) -> None:
    _, account = imported(FOLDER / file)
    assert account.unspoken(FOLDER / file) == []
