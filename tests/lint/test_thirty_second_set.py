"""What the record of all sets and the thirty-second showed to be wrong or noise, and its siblings, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_missed import HEAD, RAY, fill
from tests.lint.test_twenty_eighth_set import POD, RAYJOB, WORKFLOW, said


@pytest.mark.parametrize(("folder", "expected"), [("keps/672-serial", []), ("docs", [("RESTART033", "warning")])])
def test_a_proposal_sketches_an_api_and_no_run(folder: str, expected: list[tuple[str, str]]) -> None:
    name = f"{folder}/README.md"
    assert [each for each in said(fill(RAYJOB, ""), name) if each[0] == "RESTART033"] == expected
    assert said(POD.replace("name: c", "name: C"), name) == [("API010", "error")]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("password", False),
        ("changeMe", False),
        ("minio123", False),
        ("__DB_PASSWORD__", False),
        ("'yes'", False),
        ("pass-w0rd9", True),
        ("'83749201'", False),
        ("'1234567890123456789012345678901234567890'", False),  # in no time
    ],
)
def test_a_password_that_everyone_tries_first_keeps_nothing(value: str, found: bool) -> None:
    assert said(f"{POD}      env: [{{name: DB_PASSWORD, value: {value}}}]\n") == [("SEC016", "warning")] * found


SENSOR = """apiVersion: argoproj.io/v1alpha1
kind: Sensor
metadata: {name: s}
spec:
  dependencies: [{name: d, eventSourceName: e, eventName: n}]
  triggers:
  - template:
      name: t
      k8s:
        operation: create
        source:
          resource:
            apiVersion: argoproj.io/v1alpha1
            kind: Workflow
            metadata: {name: github-}
            spec:
              entrypoint: t
              arguments: {parameters: [{name: a, value: "{{events.body}}"}]}
              templates: [{name: t, container: {image: r/x:1, command: [echo]}}]
        parameters: [%s]
"""
TAG, NAME = "dest: spec.arguments.parameters.0.value", "dest: metadata.name, operation: append"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ((TAG, NAME), set()),
        ((TAG,), {("API008", "warning")}),
        ((NAME,), {("ARGO010", "warning")}),
        (("dest: spec.arguments.parameters.7777777777.value", NAME), {("ARGO010", "warning"), ("ARGO043", "error")}),
    ],
)
def test_what_a_trigger_writes_over_is_not_judged(written: tuple[str, ...], expected: set[tuple[str, str]]) -> None:
    parameters = ", ".join(f"{{src: {{dependencyName: d}}, {each}}}" for each in written)
    assert set(said(SENSOR % parameters)) == expected


def test_a_trigger_that_writes_to_no_place_hides_nothing() -> None:
    sensor = SENSOR % "{src: {dependencyName: d}, dest: spec.none}"
    assert ("RESTART033", "warning") in said(f"{sensor}---\n{fill(RAYJOB, '')}")


TASKS = WORKFLOW + "      dag: {tasks: [{name: a}, {name: b, dependencies: [a]}@]}\n"
ONE = ", {name: c, template: u}"
OTHER = WORKFLOW.replace("    - name: t\n", "    - {name: u, suspend: {}}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fill(TASKS, ""), [("ARGO002", "warning")]),
        (fill(TASKS, ONE) + "    - {name: u, suspend: {}}\n", [("ARGO002", "error")] * 2),
    ],
)
def test_tasks_by_their_names_alone_are_a_sketch(text: str, expected: list[tuple[str, str]]) -> None:
    assert [each for each in said(text) if each[0] == "ARGO002"] == expected


def test_a_workflow_without_a_body_is_an_excerpt() -> None:
    text = WORKFLOW.replace("  entrypoint: t\n", "") + "      nodeSelector: {a: b}\n"
    assert said(text) == []
    assert said(text.replace("spec:\n", "spec:\n  entrypoint: t\n")) == [("ARGO029", "warning")]
    misspelt = WORKFLOW + "      contaner: {image: r/x:1}\n"
    assert said(misspelt) == [("ARGO029", "error"), ("API002", "warning")]
    whole = text + "    - {name: u, suspend: {}}\n"
    assert said(whole) == [("ARGO001", "warning"), ("ARGO029", "error")]
    assert said(WORKFLOW.replace("    - name: t\n", "").replace("templates:", "ttlStrategy: {}")) == [
        ("ARGO001", "warning")
    ]
    assert ("ARGO001", "error") in said(WORKFLOW.replace("templates:", "template:") + "      suspend: {}\n")
    assert said(OTHER) == [("ARGO001", "error")]
    for text in (f"---\n{OTHER}...\n", f"{OTHER}...\n---\n{OTHER}"):  # so ends a document
        assert {*said(text)} == {("ARGO001", "error")}


def test_inputs_that_a_step_does_not_pass_are_one_finding() -> None:
    text = WORKFLOW + (
        "      steps: [[{name: s, template: u}]]\n"
        "    - {name: u, inputs: {parameters: [{name: a}, {name: b}]}, suspend: {}}\n"
    )
    assert said(text) == [("ARGO012", "error")]
    assert "'a', 'b'" in lint([read_text(text.encode(), "w.yaml")])[0].message


def test_a_parameter_that_who_submits_the_workflow_sets() -> None:
    text = WORKFLOW.replace(
        "  entrypoint: t\n", "  entrypoint: t\n  arguments: {parameters: [{name: a, value: b c}]}\n"
    ) + (
        "      container: {image: r/x:1, command: [bash, -c, 'torchrun train.py {{workflow.parameters.a}}'], "
        "resources: {limits: {nvidia.com/gpu: 8}}, volumeMounts: [{name: s, mountPath: /dev/shm}]}\n"
        "      volumes: [{name: s, emptyDir: {medium: Memory}}]\n"
    )
    assert [each for each in said(text) if each[0] == "ARGO025"] == []


PYTORCH = fill(HEAD, "kubeflow.org/v1", "PyTorchJob") + "  pytorchReplicaSpecs:\n"
RANK = (
    "    %s:\n      replicas: 2\n      restartPolicy: OnFailure\n      template: {spec: {containers: [{name: pytorch, "
    "image: 'r/x:1', command: [python, train.py, --backend, %s], env: [{name: MASTER_ADDR, value: %s}]}]}}\n"
)


@pytest.mark.parametrize(
    ("backend", "address", "expected"),
    [
        ("gloo", "train-master-0", []),
        ("nccl", "train-master-0", [("RESTART002", "warning")]),
        ("mpi", "train-master-0", []),
        ("'cpu:gloo,cuda:nccl'", "train-master-0", [("RESTART002", "warning")]),
        ("$(BACKEND)", "train-master-0}, {name: BACKEND, value: nccl", [("RESTART002", "warning")]),
        ("gloo", "localhost", [("REND030", "warning")]),
        ("gloo", "'3'", []),
    ],
)
def test_gloo_and_the_operators_own_address(backend: str, address: str, expected: list[tuple[str, str]]) -> None:
    text = PYTORCH + RANK.replace("replicas: 2", "replicas: 1") % ("Master", backend, address)
    found = said(text + RANK % ("Worker", backend, address))
    assert [each for each in found if each[0] in ("RESTART002", "REND030")] == expected


def test_an_empty_address_is_not_the_operators_where_the_number_of_pods_is_filled_in_later() -> None:
    text = PYTORCH + RANK.replace("replicas: 2", "replicas: 1") % ("Master", "gloo", "''")
    assert ("REND030", "warning") in said(
        text + RANK.replace("replicas: 2", "replicas: $(N)") % ("Worker", "gloo", "''")
    )


def test_a_here_document_says_what_it_is() -> None:
    (found,) = lint([read_text(f"cat <<EOF | kubectl apply -f -\n{POD}EOF\n".encode(), "page.yaml")])
    assert (found.rule, found.level.word) == ("YAML001", "warning")
    assert found.message.startswith("not a manifest, but text around one")


@pytest.mark.parametrize(("path", "found"), [("/tmp/train.log", False), ("/tmp/checkpoints", True)])
def test_a_log_is_not_what_a_training_makes(path: str, found: bool) -> None:
    text = POD + f"      command: [torchrun, --nproc-per-node=1, train.py, --output={path}]\n"
    assert (("STORE015", "warning") in said(text)) is found


def test_a_success_policy_needs_an_indexed_job() -> None:
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  successPolicy: {rules: [{succeededCount: 1}]}\n"
    )
    job += "  completions: 2\n  parallelism: 2\n"
    job += "  template: {spec: {restartPolicy: Never, containers: [{name: t, image: r/x:1}]}}\n"
    assert said(job) == [("GANG019", "error")]
    assert said(job.replace("  completions", "  completionMode: Indexed\n  completions")) == []


@pytest.mark.parametrize(("params", "found"), [("num-gpus: '2'", True), ("num-gpus: '2', resources: '{}'", False)])
def test_numbers_of_the_authors_own_are_no_devices(params: str, found: bool) -> None:
    assert (("RAY002", "warning") in said(fill(RAY, params, "sleep"))) is found


def test_nccl_tests_are_no_training() -> None:
    mpi = fill(HEAD, "kubeflow.org/v2beta1", "MPIJob") + (
        "  runPolicy: {cleanPodPolicy: Running}\n  mpiReplicaSpecs:\n    Launcher: {replicas: 1, template: {spec: "
        "{containers: [{name: l, image: 'r/x:1', command: [mpirun, @]}]}}}\n    Worker: {replicas: 8, template: {spec: "
        "{containers: [{name: w, image: 'r/x:1', resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"
    )
    assert said(fill(mpi, "./build/all_reduce_perf")) == []
    assert said(fill(mpi, "./train")) == [("GANG012", "warning")]


@pytest.mark.parametrize(
    ("words", "trained"), [("./build/all_reduce_perf, -b, '8'", False), ("train.py, --tag, llama_perf", True)]
)
def test_nccl_tests_are_known_by_their_names(words: str, trained: bool) -> None:
    text = f"{POD}      command: [mpirun, -np, '8', {words}]\n      resources: {{limits: {{nvidia.com/gpu: 8}}}}\n"
    assert said(text) == [("MEM001", "warning")] * trained
