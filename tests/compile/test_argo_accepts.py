"""What Argo and JobSet themselves would say: the real linter where there is one, and always the field names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hera.workflows import models as m

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.supervisor.settings import read_settings
from argosy.workflows.cli.main import invoke
from tests.strange import strange
from tests.validation import argo

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = sorted((ROOT / "tests/goldens").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "examples").glob("*/*.toml"))
JOBSET = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {"network", "failurePolicy", "replicatedJobs"},
    "spec.network": {"enableDNSHostnames", "publishNotReadyAddresses"},
    "spec.failurePolicy": {"maxRestarts"},
    "spec.replicatedJobs": {"name", "replicas", "template"},
    "template": {"spec"},
    "job": {"completionMode", "completions", "parallelism", "backoffLimit", "template"},
}
"""Fields of JobSet v1alpha2 (0.12) and batch/v1 Job that we use; the pod is checked with Hera's model of it."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every golden, and the examples as they compile now; a file each."""
    folder = tmp_path_factory.mktemp("compiled")
    made = list(GOLDENS)
    for toml in EXAMPLES:
        target = folder / f"{toml.parent.name}-{toml.stem}.yaml"
        assert invoke(["compile", str(toml), "-o", str(target)]) == 0
        made.append(target)
    composing = folder / "composing"
    shutil.copytree(ROOT / "examples/hera-compose", composing, ignore=shutil.ignore_patterns(".argosy"))
    done = subprocess.run([sys.executable, "compose.py"], cwd=composing, check=True, capture_output=True)
    (folder / "hera-compose.yaml").write_bytes(done.stdout)
    return [*made, folder / "hera-compose.yaml"]


@pytest.mark.skipif(not argo.binary(), reason=f"no argo {argo.VERSION} here: its linter was not asked")
def test_argo_lint_accepts_all(compiled: list[Path]) -> None:
    for path in compiled:
        done = subprocess.run(
            [argo.binary(), "lint", "--offline", "--strict", "-o", "simple", str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{path.name}: {done.stdout}{done.stderr}"


def test_every_field_is_one_of_argos(compiled: list[Path]) -> None:
    for path in compiled:
        document = yaml.safe_load(path.read_text())
        model = m.WorkflowTemplate if document["kind"] == "WorkflowTemplate" else m.Workflow
        assert list(strange(document, model, path.name)) == []


def test_the_check_of_fields_can_fail() -> None:
    document = {"spec": {"templates": [{"name": "x", "retryStrategy": {"backof": {}}, "container": {"imag": "y"}}]}}
    assert list(strange(document, m.Workflow, "w")) == [
        "w.spec.templates[0].retryStrategy.backof",
        "w.spec.templates[0].container.imag",
    ]


def test_every_field_of_a_gang_is_known(compiled: list[Path], gang_of: Callable[..., dict[str, Any]]) -> None:
    for path in compiled:
        gang = gang_of(yaml.safe_load(path.read_text()))
        spec = gang["spec"]
        (node,) = spec["replicatedJobs"]
        job = node["template"]["spec"]
        parts = {"": gang, "spec": spec, "spec.network": spec["network"], "spec.failurePolicy": spec["failurePolicy"],
                 "spec.replicatedJobs": node, "template": node["template"], "job": job}  # fmt: skip
        assert {name: set(part) - JOBSET[name] for name, part in parts.items()} == {name: set() for name in parts}
        # Hera has no model of a pod's spec; what its Template and Container share with one is enough to find a slip.
        container = job["template"]["spec"]["containers"][0]
        assert list(strange(container, m.Container, path.name)) == []


@pytest.mark.parametrize(
    "workflow", ["a", "stdlib-gpt-x7k2p", "n" * 40 + "-abcde", "2024.run-1", "w" * 34 + "--------x", "x" * 253]
)
@pytest.mark.parametrize("attempt", [1, 42, 9_999_999])
def test_jobset_takes_every_name_of_a_gang(workflow: str, attempt: int) -> None:
    base = {"store_uri": "s3://b/p", "name": "n", "gang": "g", "min_nnodes": 1}
    names = {
        read_settings(TrainArgs(workflow=workflow, workflow_uid=uid, **base)).gang_name(attempt)  # type: ignore[arg-type]
        for uid in ("0123abcd-1", "ffffffff-1")
    }
    assert len(names) == 2, "two workflows must not share a gang"
    for name in names:
        assert name[0].isalpha()
        assert all(letter.isalnum() or letter == "-" for letter in name)
        assert name == name.lower()
        # The webhook's own measure: the longest pod, with the Job's five random characters.
        assert len(f"{name}-node-0-9999-abcde") <= 63
