"""A Workflow that only refers to a WorkflowTemplate: its parameters, annotations and volumes come from there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from argosy.workflows.code import CodeArchive
from argosy.workflows.compile import compile_run
from argosy.workflows.spec.run import TrainingRun

REFERRING = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: nightly-}
spec:
  workflowTemplateRef: {name: tiny}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """What compile makes of a run, with admission as its only task: the rest needs torch."""
    run = TrainingRun(name="tiny", script="train.py")
    document = yaml.safe_load(compile_run(run, code=CodeArchive(b"", "c" * 64, ()), kind="WorkflowTemplate"))
    main = document["spec"]["templates"][0]
    main["dag"]["tasks"] = main["dag"]["tasks"][:1]
    path = tmp_path / "template.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_parameters_store_and_volumes_are_the_templates(template, argosy, tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(REFERRING)
    code, _, err = argosy("run", "w.yaml", "--templates", "template.yaml", "-p", "run-id=r7")
    assert code == 0, err
    template.unlink()  # what was run is in the run's folder
    found = json.loads(argosy("status", "r7", "--json")[1])
    assert found["phase"] == "Succeeded"
    assert (found["run_id"], found["name"]) == ("r7", "tiny")
    assert found["store_uri"] == "file:///mnt/argosy/store"
    assert found["admission"]["decision"] == "start"
    (folder,) = (tmp_path / ".argosy/runs").iterdir()
    assert folder.name.startswith("nightly-")


def test_a_parameter_that_the_template_does_not_have_is_refused(template, argosy, tmp_path) -> None:
    (tmp_path / "w.yaml").write_text(REFERRING)
    code, _, err = argosy("run", "w.yaml", "--templates", str(template), "-p", "nope=1")
    assert code == 2
    assert "-p nope: the workflow has no such parameter; it has run-id" in err
