"""What public manifests of benchmarks/public_manifests.tsv's fourth set showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

MPI = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: train}}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
            - name: launcher
              image: registry.example/train:1.4.2
              env: [{{name: MASTER_ADDR, value: {address}}}]
              command: [mpirun, -np, "2", -x, MASTER_ADDR, {started}]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: worker
              image: registry.example/train:1.4.2
              resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: trainer
          image: registry.example/train:1.4.2
          env: [{{name: WORLD_SIZE, value: "3"}}, {{name: MASTER_ADDR, value: train-0.train}}]
          command: [sh, -c, "{script}"]
          resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""
CRON = """\
apiVersion: argoproj.io/v1alpha1
kind: {kind}
metadata: {{name: nightly}}
spec:
  entrypoint: train
  templates:
    - name: train
      inputs: {{parameters: [{{name: uri}}]}}
      container: {{image: "registry.example/train:1.4.2", command: [train], args: ["{{{{inputs.parameters.uri}}}}"]}}
"""


def rules(text: str, *families: str) -> set[tuple[str, str]]:
    return {each[:2] for each in found(text, *families)}


@pytest.mark.parametrize(("address", "wrong"), [("train-worker-0", False), ("train-worker-0.trian", True)])
def test_the_mpi_operator_has_its_pods_search_their_subdomain(address: str, wrong: bool) -> None:
    text = MPI.format(address=address, started="python, train.py")
    assert (("REND010", "warning") in rules(text, "REND")) is wrong


@pytest.mark.parametrize(
    ("started", "idle"),
    [
        ("/opt/train.sh", False),
        ("torchrun, --nproc-per-node=8, train.py", False),
        ("python, -m, torch.distributed.run, --nproc-per-node=8, train.py", False),
        ("python, train.py", True),
    ],
)
def test_one_slot_may_start_the_ranks_of_its_node(started: str, idle: bool) -> None:
    text = MPI.format(address="train-worker-0", started=started)
    assert (("REND051", "warning") in rules(text, "REND")) is idle


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("python train.py --rank 1 & python train.py --rank 0", False),
        ("python train.py --rank $JOB_COMPLETION_INDEX", True),
        ("python train.py", True),
    ],
)
def test_ranks_that_a_script_gives_out(script: str, wrong: bool) -> None:
    text = JOB.format(name="train", script=script, gpus=1)
    assert (("REND043", "warning") in rules(text, "REND")) is wrong


@pytest.mark.parametrize("value", ["($gpus)", "..."])
def test_what_a_test_or_a_program_fills_in(value: str) -> None:
    assert not found(JOB.format(name=value, script="sleep 5", gpus=value), "API", "MEM")


@pytest.mark.parametrize(
    ("name", "level"),
    [("train-JOBNAME-ID", {"note"}), ("train-rankN", {"warning"}), ("Train", {"warning"}), ("train", set())],
)
def test_words_in_capitals_are_replaced_by_a_script(name: str, level: set[str]) -> None:
    assert {each[1] for each in found(JOB.format(name=name, script="sleep 5", gpus=1), "API")} == level


def test_an_owner_without_uid_is_expected_and_not_applied() -> None:
    owner = "ownerReferences: [{apiVersion: v1, kind: Pod, name: a}]"
    text = pod().replace("{name: train}", f"{{name: train, {owner}}}")
    assert [each[:2] for each in found(text, "API")] == [("API005", "note")]


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("CronWorkflow", "{schedule: '0 2 * * *', workflowSpec: {}}", {("API006", "warning")}),
        ("Workflow", "{synchronization: {mutex: {name: a}}, workflowTemplateRef: {name: a}}", {("API006", "warning")}),
        (
            "Workflow",
            "{synchronization: {mutexs: [{name: a}]}, workflowTemplateRef: {name: a}}",
            {("API002", "warning")},
        ),
    ],
)
def test_a_field_of_an_older_release_is_no_error(kind: str, spec: str, expected: set[tuple[str, str]]) -> None:
    text = f"apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: nightly}}\nspec: {spec}\n"
    assert rules(text, "API") == expected


@pytest.mark.parametrize("field", ["cmdd: [y]", "resourcez: {}"])
def test_a_container_of_an_argo_template_has_a_containers_fields(field: str) -> None:
    container = f"{{image: 'registry.example/train:1.4.2', command: [train], {field}}}"
    spec = f"{{entrypoint: a, templates: [{{name: a, container: {container}}}]}}"
    text = f"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{generateName: a-}}\nspec: {spec}\n"
    assert rules(text, "API") == {("API002", "warning")}


@pytest.mark.parametrize(("value", "expected"), [("auto", "API006"), ("eight", "API004"), ("8", "")])
def test_words_of_an_older_trainer(value: str, expected: str) -> None:
    text = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: train}\n"
        f"spec: {{runtimeRef: {{name: torch}}, trainer: {{numProcPerNode: {value}}}}}\n"
    )
    assert "".join(each[0] for each in found(text, "API")) == expected


@pytest.mark.parametrize(
    ("limits", "command", "warns"),
    [
        ("{nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30}", "[python, train.py]", False),
        ("{nvidia.com/gpu: 2}", "[sleep, infinity]", False),
        ("{nvidia.com/gpu: 2}", "[python, train.py]", False),
        ("{nvidia.com/gpu: 2}", "[torchrun, --nproc-per-node=2, train.py]", True),
        ("{nvidia.com/gpu: 2}", "[torchrun, --nproc-per-node=1, train.py]", False),
    ],
)
def test_what_counts_as_a_gpu_that_needs_shared_memory(limits: str, command: str, warns: bool) -> None:
    text = pod(f"command: {command}\nresources: {{limits: {limits}}}")
    assert (("MEM001", "warning") in rules(text, "MEM")) is warns


def test_the_values_of_a_container_that_nothing_expands_are_one_finding() -> None:
    text = pod("env: [{name: A, value: $X}, {name: PATH, value: '/opt:$PATH'}, {name: B, value: $Y}]\ncommand: [train]")
    assert [each[0] for each in found(text, "ARGV")] == ["ARGV022"]


@pytest.mark.parametrize(("value", "stands"), [("HF_TOKEN", False), ("YOUR_API_KEY", False), ("s3cr3t-token", True)])
def test_the_name_of_a_secret_is_no_secret(value: str, stands: bool) -> None:
    assert (("SEC016", "warning") in rules(pod(f"env: [{{name: HF_TOKEN, value: {value}}}]"), "SEC")) is stands


@pytest.mark.parametrize(("kind", "wrong"), [("Workflow", True), ("WorkflowTemplate", False)])
def test_who_refers_to_a_template_gives_its_arguments(kind: str, wrong: bool) -> None:
    assert (("ARGO012", "warning") in rules(CRON.format(kind=kind), "ARGO")) is wrong
