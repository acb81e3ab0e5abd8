"""What the thirty-seventh set of public manifests, and the noise left before it, showed, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from tests.lint.rules_table import pod
from tests.lint.test_twenty_eighth_set import said

WORKFLOW = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: a-}\nspec:\n  entrypoint: m\n"
    "  templates:\n  - {name: m, retryStrategy: {limit: 3, retryPolicy: Always, backoff: {maxDuration: 1h}},\n"
    "     container: {image: 'r/x:1', command: [%s]}}\n"
)
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      container: [{name: a, image: 'r/x:1'}]\n"
)


def test_a_list_of_containers_that_is_misspelt_is_no_patch() -> None:
    assert ("API002", "error") in said(JOB)


@pytest.mark.parametrize("folder", ["testdata", "expectedfailures", "lint-fail", "lintfail"])
def test_what_must_fail_is_wrong_on_purpose(folder: str) -> None:
    assert said(pod("env: [{name: A, value: 1}]"), f"{folder}/a.yaml") == []


@pytest.mark.parametrize(("command", "level"), [("echo, done", "note"), ("torchrun, t.py", "warning")])
def test_a_step_of_seconds_is_no_training_that_is_not_retried(command: str, level: str) -> None:
    assert ("ARGO016", level) in said(WORKFLOW % command, least=Level.NOTE)


SERVER = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: s}\nspec:\n  selector: {matchLabels: {a: b}}\n"
    "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: r, command: [accelerate, launch,"
    " --num_processes=1, --num_machines=1, %s], resources: {limits: {nvidia.com/gpu: 2}}}]}}\n"
)
ONE_RANK = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  completionMode: Indexed\n  completions: %s\n"
    "  parallelism: %s\n  backoffLimit: 0\n  template: {spec: {restartPolicy: Never, subdomain: s, containers: [{"
    "name: c, image: 'r/x:1', command: [torchrun, --nnodes=%s, --node-rank=$(JOB_COMPLETION_INDEX), "
    "--master-addr=j-0.s, train.py]}]}}\n---\n"
    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None, selector: {job-name: j}}\n"
)


@pytest.mark.parametrize(("script", "told"), [("inference_api.py", False), ("train.py", True)])
def test_a_server_of_one_process_spreads_its_model_over_the_gpus(script: str, told: bool) -> None:
    assert (("REND053", "warning") in said(SERVER % script)) == told


@pytest.mark.parametrize(("nodes", "told"), [(1, False), (2, True)])
def test_the_only_rank_waits_for_no_others_name(nodes: int, told: bool) -> None:
    assert (("REND003", "warning") in said(ONE_RANK % (nodes, nodes, nodes))) == told


def test_what_an_image_makes_of_its_first_argument_is_the_images() -> None:
    assert said(pod('args: ["exit 1"]')) == []
    assert said(pod('args: ["python train.py"]')) == [("ARGV001", "warning")]
    assert said(pod('command: ["exit 1"]')) == [("ARGV001", "error")]


@pytest.mark.parametrize("place", ["argoWorkflow.parameters.0.src.dependencyName", "argoWorkflow.parameters.0.dest"])
def test_a_trigger_writes_over_its_own_parameters(place: str) -> None:
    source = "source: {resource: {apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: c}}}"
    own = "parameters: [{src: {dependencyName: WRITTEN_OVER, dataKey: body}, dest: spec.x}]"
    over = f"parameters: [{{src: {{dependencyName: d, dataKey: body}}, dest: {place}}}]"
    spec = f"triggers: [{{template: {{name: t, argoWorkflow: {{operation: resubmit, {source}, {own}}}}}, {over}}}]"
    spec = f"{{dependencies: [{{name: d, eventSourceName: e, eventName: f}}], {spec}}}"
    text = f"{{apiVersion: argoproj.io/v1alpha1, kind: Sensor, metadata: {{name: s}}, spec: {spec}}}"
    assert said(text) == ([] if place.endswith("Name") else [("ARGO043", "error")])
