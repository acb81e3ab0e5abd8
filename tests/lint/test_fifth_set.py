"""What public manifests of benchmarks/public_manifests.tsv's fifth set showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.rules_table import found, pod

WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{generateName: a-}}
spec:
  entrypoint: a
  templates:
    - name: a
      resource:
        action: create
        successCondition: status.{field} > 0
        failureCondition: status.{field} > 9
        manifest: |
          apiVersion: kubeflow.org/{version}
          kind: TFJob
          metadata:
            generateName: train-
            {owner}
          spec: {{}}
"""
SENSOR = """\
apiVersion: argoproj.io/v1alpha1
kind: Sensor
metadata: {name: hook}
spec:
  triggers:
    - resource: {group: argoproj.io, version: v1alpha1, kind: Workflow, source: {inline: ""}}
"""
GANG = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: train}}
spec:
  replicatedJobs:
    - name: workers
      template:
        spec:
          parallelism: 2
          completions: 2
          backoffLimit: 0
          template:
            spec:
              restartPolicy: OnFailure
              containers:
                - {{name: a, image: "registry.example/a:1", command: [torchrun, --nnodes=2, train.py]{more}}}
"""


def read(text: str, name: str = "job.yaml") -> list[tuple[str, str, int]]:
    return [(each.rule, each.level.word, each.line) for each in lint([read_text(text.encode(), name)])]


@pytest.mark.parametrize(
    "text",
    [
        pod("env: {{- toYaml .Values.env | nindent 4 }}"),
        pod("env: {{ env }}\ncommand: [{{ run }}]"),
        "{% if gpus %}\n" + pod() + "{% endif %}\n",
        pod().replace("name: train", "name: @@JOB_NAME@@"),
        pod() + "  volumes:\n${VOLUMES}\n  hostname: a\n",
    ],
)
def test_a_template_that_is_no_yaml_is_one_warning(text: str) -> None:
    assert [each[:2] for each in read(text) if each[0].startswith("YAML")] == [("YAML001", "warning")]


@pytest.mark.parametrize(
    ("text", "name", "level"),
    [
        (pod("env: {{inputs.parameters.env}}"), "job.yaml", "error"),  # Argo, too, reads YAML before it fills in
        (pod("env: [a"), "job.yaml", "error"),
        (pod("env: [a"), "job.yaml.j2", "warning"),
        (pod("env: [a"), "<stdin>", "error"),
    ],
)
def test_what_is_no_template_must_be_yaml(text: str, name: str, level: str) -> None:
    assert [each[1] for each in read(text, name) if each[0] == "YAML001"] == [level]


def test_what_a_templates_documents_show_is_no_error() -> None:
    refused = pod("volumeMounts: [{name: gone, mountPath: /a}]")
    assert ("STORE001", "error") in {each[:2] for each in read(refused)}
    assert "error" not in {each[1] for each in read(refused + "---\na: {{ b }}\n")}


@pytest.mark.parametrize(
    "value",
    [
        "gp3-<username>",
        "<your gpus>",
        "x-{user}",
        "%USER%",
        "#USER#",
        "%(user)s",
        "<%= user %>",
        "[[ .User ]]",
        "@@U@@",
    ],
)
def test_what_a_guide_or_another_program_fills_in(value: str) -> None:
    resources = f"resources: {{limits: {{memory: '{value}', nvidia.com/gpu: '{value}'}}}}"
    text = pod(resources).replace("{name: train}", f"{{name: '{value}'}}")
    assert {each[0] for each in found(text, "API", "MEM")} == {"MEM001"}  # GPUs, however many, want shared memory


@pytest.mark.parametrize("value", ["your-memory", "CHANGE_ME", "TODO", "xxx", "GPU_MEMORY"])
def test_words_that_ask_for_others_are_no_errors(value: str) -> None:
    text = pod(f"resources: {{limits: {{memory: {value}}}}}").replace("{name: train}", f"{{name: '{value}'}}")
    assert "error" not in {each[1] for each in found(text, "API", "MEM")}


@pytest.mark.parametrize("value", ["64GB", "lots", "64 GB"])
def test_a_wrong_quantity_stays_an_error(value: str) -> None:
    text = pod(f"resources: {{limits: {{memory: {value}}}}}")
    assert ("MEM012", "error") in {each[:2] for each in found(text, "MEM")}


def test_a_mount_may_have_its_volume_from_a_template() -> None:
    text = pod("volumeMounts: [{name: data, mountPath: /a}]") + '  volumes: [{name: "${NAME}", emptyDir: {}}]\n'
    assert "STORE001" not in {each[0] for each in found(text, "STORE")}


@pytest.mark.parametrize(
    ("version", "field", "never"),
    [("v1alpha2", "tfReplicaStatuses.Worker.failed", False), ("v1", "tfReplicaStatuses.Worker.failed", True)],
)
def test_the_status_of_a_version_that_is_gone_is_not_judged(version: str, field: str, never: bool) -> None:
    text = WORKFLOW.format(version=version, field=field, owner="labels: {}")
    assert (("ARGO024", "note") in {each[:2] for each in found(text, "ARGO")}) is never


@pytest.mark.parametrize(("owner", "left"), [("ownerReferences: [{kind: Workflow}]", False), ("labels: {}", True)])
def test_an_owner_may_be_written_out(owner: str, left: bool) -> None:
    text = WORKFLOW.format(version="v1", field="replicaStatuses.Worker.failed", owner=owner)
    assert (("ARGO019", "warning") in {each[:2] for each in found(text, "ARGO")}) is left


def test_a_trigger_of_the_first_sensors_names_a_kind_and_is_no_object() -> None:
    assert "API019" not in {each[0] for each in found(SENSOR, "API")}


@pytest.mark.parametrize(
    ("name", "level"),
    [("NCCL_TIMEOUT", "warning"), ("NCCL_LL_THRESHOLD", "note"), ("NCCL_IB_GDR_LEVEL", "warning")],
)
def test_a_name_that_nccl_does_not_read_fails_nothing(name: str, level: str) -> None:
    assert {each[1] for each in found(pod(f"env: [{{name: {name}, value: '1'}}]"), "NCCL")} == {level}


@pytest.mark.parametrize(("more", "told"), [("", True), (", restartPolicy: OnFailure", False)])
def test_a_container_with_a_restart_policy_of_its_own_is_meant_so(more: str, told: bool) -> None:
    assert ("RESTART004" in {each[0] for each in found(GANG.format(more=more), "RESTART")}) is told


@pytest.mark.parametrize(("limit", "warns"), [("6", True), ("2048000", False)])
def test_a_limit_of_thousands_is_meant(limit: str, warns: bool) -> None:
    text = GANG.format(more="").replace("backoffLimit: 0", f"backoffLimit: {limit}")
    assert (("RESTART001", "warning") in {each[:2] for each in found(text, "RESTART")}) is warns


def test_a_device_that_a_script_writes_is_not_compared() -> None:
    text = pod("resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: NUM_GPUS}}")
    assert "error" not in {each[1] for each in found(text, "MEM")}
