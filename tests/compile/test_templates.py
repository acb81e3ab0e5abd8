"""Template names, inputs and outputs are public API; a change here is a change of a promise."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hera.workflows import DAG, Container, Workflow

from argosy.steps.contract.errors import InputError
from argosy.workflows import templates
from argosy.workflows.compile import workflow_annotations, workflow_parameters
from argosy.workflows.spec.run import TrainingRun

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hera-compose"
DIGEST = "c" * 64
# Name -> inputs with defaults (None: required), artifacts, outputs.
FROZEN: dict[str, tuple[dict[str, str | None], set[str], set[str]]] = {
    "snapshot": (
        {"run-id": "", "dataset-uri": "file:///mnt/argosy/data-sets/one"},
        set(),
        {"dataset-digest", "dataset-manifest-uri", "objects", "bytes"},
    ),
    "admit": (
        {"run-id": "", "dataset-digest": "", "event": "", "force": "false"},
        set(),
        {"decision", "reason", "key"},
    ),
    "stage": ({"run-id": "", "dataset-digest": ""}, set(), {"plan-uri", "bytes"}),
    "train": (
        {"run-id": "", "dataset-digest": "", "args": "[]", "resume-from": "latest"},
        {"gang"},
        {"checkpoint-uri", "checkpoint-digest", "verdict"},
    ),
    "evaluate": ({"run-id": "", "checkpoint-digest": None}, set(), {"metric", "report-uri"}),
    "gate": ({"run-id": "", "checkpoint-digest": None, "value": None}, set(), {"decision", "reason"}),
    "promote": ({"run-id": "", "checkpoint-digest": None, "value": None}, set(), {"promoted-digest"}),
    "finalize": ({"run-id": ""}, set(), set()),
}


def make(name: str, run: TrainingRun) -> Container:
    function = getattr(templates, name)
    made = function(run, DIGEST) if name in ("admit", "train", "evaluate") else function(run)
    assert isinstance(made, Container)
    return made


def built(template: Container) -> dict[str, Any]:
    return dict(template._build_template().model_dump(exclude_none=True, by_alias=True))


def test_these_and_no_others() -> None:
    assert set(templates.__all__) == {*FROZEN, "restricted"}


@pytest.mark.parametrize("name", FROZEN)
def test_a_template_is_what_was_promised(name: str, full: dict[str, Any]) -> None:
    template = built(make(name, TrainingRun(**full)))
    inputs, artifacts, outputs = FROZEN[name]
    assert template["name"] == name
    assert {each["name"]: each.get("default") for each in template["inputs"]["parameters"]} == inputs
    assert {each["name"] for each in template["inputs"].get("artifacts", [])} == artifacts
    found = template.get("outputs", {}).get("parameters", [])
    assert {each["name"] for each in found} == outputs
    assert {each["name"] for each in found if "default" not in each["valueFrom"]} <= {"decision"}
    assert all(each["valueFrom"]["path"] == f"/argosy/outputs/{each['name']}" for each in found)


@pytest.mark.parametrize("name", FROZEN)
def test_a_template_stands_alone_in_a_foreign_workflow(name: str, full: dict[str, Any]) -> None:
    template = built(make(name, TrainingRun(**full)))
    text = str(template)
    assert "workflow.parameters" not in text
    assert "tasks." not in text
    assert {mount["name"] for mount in template["container"]["volumeMounts"]} <= {
        volume["name"] for volume in template["volumes"]
    }


def test_submit_time_parameters(full: dict[str, Any]) -> None:
    found = {each.name: each.value for each in workflow_parameters(TrainingRun(**full))}
    assert found == {
        "run-id": "",
        "args": "[]",
        "resume-from": "latest",
        "force": "false",
        "event": "",
        "dataset-uri": "file:///mnt/argosy/data-sets/one",
    }


def test_annotations_name_the_store(full: dict[str, Any]) -> None:
    assert workflow_annotations(TrainingRun(**full)) == {
        "argosy.dev/store-uri": "file:///mnt/argosy/store",
        "argosy.dev/run-name": "full",
        "argosy.dev/claim": "argosy",
    }


@pytest.mark.parametrize("name", ["snapshot", "stage", "evaluate", "gate", "promote"])
def test_a_template_without_its_table_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=rf"is required by {name}\(run\); add \[(dataset|evaluation)\]"):
        make(name, TrainingRun(name="n", script="t.py", code=""))


@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_code_that_was_not_packed_is_refused(name: str, full: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="the folder was not packed"):
        getattr(templates, name)(TrainingRun(**full))


def test_templates_join_the_workflow_they_are_made_in(full: dict[str, Any]) -> None:
    with Workflow(name="w", entrypoint="main") as workflow:
        gate = make("gate", TrainingRun(**full))
        with DAG(name="main"):
            gate(name="judge", arguments={"checkpoint-digest": "d", "value": "1.0"})
    names = [each["name"] for each in workflow.to_dict()["spec"]["templates"]]
    assert sorted(names) == ["gate", "main"]


def test_the_compose_example_prints_a_workflow(tmp_path: Path) -> None:
    for name in ("compose.py", "train.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    command = [sys.executable, "-W", "error", "compose.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load(done.stdout)["spec"]
    by_name = {each["name"]: each for each in spec["templates"]}
    assert list(by_name) == ["prepare", "train", "announce", "main"]
    tasks = {each["name"]: each for each in by_name["main"]["dag"]["tasks"]}
    assert "depends" not in tasks["prepare"]
    assert (tasks["train"]["depends"], tasks["announce"]["depends"]) == ("prepare", "train")
    gang = yaml.safe_load(by_name["train"]["inputs"]["artifacts"][0]["raw"]["data"])
    args = gang["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["args"]
    (digest,) = [text.split("=")[1] for text in args if text.startswith("--code-digest=")]
    assert (tmp_path / f".argosy/store/composed/code/{digest}.tar.gz").is_file()
