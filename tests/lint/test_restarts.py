"""RESTART: which layer starts what again, for every kind that has such a layer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import argosy
from tests.lint.manifests import JOB, JOBSET, PYTORCH, VOLCANO, found, rules

ELASTIC = "elasticPolicy: {rdzvBackend: c10d, minReplicas: 2, maxReplicas: 4, maxRestarts: 9}\n  runPolicy"
C10D = "--rdzv-backend=c10d, --rdzv-endpoint=train-0.train, --max-restarts=3, --nnodes=2"
POLICY = """backoffLimit: 0
  podFailurePolicy:
    rules:
      - action: FailJob
        onExitCodes: {containerName: trainer, operator: In, values: [1]}
"""


def test_a_gang_with_spares_as_we_compile_it_is_right(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch.distributed as dist\ndist.init_process_group()\n")
    gang = {"nnodes": 2, "spares": 1, "resources": {"gpu": 1}}
    workflow = argosy.TrainingRun(name="gpt", script="train.py", gang=gang).compile(tmp_path).decode()
    assert "backoffLimit: 20" in workflow
    assert rules(workflow, "RESTART") == set()


@pytest.mark.parametrize("manifest", [JOB, JOBSET, PYTORCH, VOLCANO])
def test_what_restarts_as_a_whole_is_right(manifest: str) -> None:
    assert rules(manifest, "RESTART") == set()


@pytest.mark.parametrize(
    ("text", "instead", "rule", "line"),
    [
        ("  backoffLimit: 0\n", "", "RESTART001", 5),
        ("backoffLimit: 0", "backoffLimit: 3", "RESTART001", 9),
        ("backoffLimit: 0", 'backoffLimit: "3"', "RESTART001", 9),
        ("restartPolicy: Never", "restartPolicy: Always", "RESTART005", 14),
        ("      restartPolicy: Never\n", "", "RESTART005", 13),
        ("  backoffLimit: 0\n", POLICY.replace("backoff", "  backoff").replace("[1]", "[42, 143]"), "RESTART011", 13),
        ("--nnodes=2", "--max-restarts=2, --nnodes=2", "RESTART018", 20),
    ],
)
def test_a_job(text: str, instead: str, rule: str, line: int) -> None:
    assert text in JOB
    assert (rule, line) in found(JOB.replace(text, instead), "RESTART")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("backoffLimit: 0", "backoffLimit: {{limit}}"),  # YAML reads a mapping in it: nobody knows
        ("backoffLimit: 0", 'backoffLimit: "{{limit}}"'),
        ("backoffLimit: 0", "backoffLimit: $LIMIT"),
        ("--nnodes=2", "--nnodes=1"),  # two trainings of one node each
        ("--nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), --master-addr=train-0.train", C10D),
        ("completions: 2\n  parallelism: 2", "completions: 1\n  parallelism: 1"),
    ],
)
def test_what_is_not_known_or_is_no_gang_may_back_off(text: str, instead: str) -> None:
    assert text in JOB
    manifest = JOB.replace(text, instead)
    assert "RESTART001" not in rules(manifest.replace("backoffLimit: 0", "backoffLimit: 3"), "RESTART")


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("restartPolicy: Never", "restartPolicy: OnFailure", {"RESTART002"}),
        ("      restartPolicy: Never\n", "", {"RESTART002"}),
        ("restartPolicy: Never", "restartPolicy: ExitCode", {"RESTART003"}),
        ("        spec:\n", "        spec:\n          restartPolicy: OnFailure\n", set()),
        ("runPolicy", ELASTIC, set()),
        ("runPolicy", ELASTIC.replace("minReplicas: 2", "minReplicas: 5"), {"REND041"}),
        ("runPolicy", ELASTIC.replace("minReplicas: 2, maxReplicas: 4", "minReplicas: 1, maxReplicas: 1"), {"REND041"}),
        ("runPolicy", ELASTIC.replace(", maxRestarts: 9", ""), {"RESTART019"}),
        ("cleanPodPolicy: Running", "activeDeadlineSeconds: 5\n    ttlSecondsAfterFinished: 5", set()),
    ],
)
def test_a_pytorchjob(text: str, instead: str, expected: set[str]) -> None:
    assert text in PYTORCH
    manifest = PYTORCH.replace(text, instead).replace("train.py", "train.py, --backend=nccl")
    if "elasticPolicy" in instead:
        manifest = manifest.replace("restartPolicy: Never", "restartPolicy: OnFailure")
    assert rules(manifest, "RESTART", "REND") == expected


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("              restartPolicy: Never\n", "", set()),
        ("    restartStrategy: BlockingRecreate\n", "", set()),
        ("Strategy: BlockingRecreate", "Strategy: Recreate", set()),
        ("  replicatedJobs:\n", "  successPolicy: {operator: Any}\n  replicatedJobs:\n", {"RESTART016"}),
        ("backoffLimit: 0", "backoffLimit: 6", {"RESTART001"}),
        ("Strategy: BlockingRecreate", "Strategy: InPlaceRestart", set()),
    ],
)
def test_a_jobset(text: str, instead: str, expected: set[str]) -> None:
    assert text in JOBSET
    assert rules(JOBSET.replace(text, instead), "RESTART") == expected


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("    - {event: PodFailed, action: RestartJob}\n", "", {"RESTART036"}),
        ("{event: PodFailed, action: RestartJob}", '{event: "*", action: RestartJob}', set()),
        ("event: PodFailed, action: RestartJob", "event: PodFailed, action: RestartTask", {"RESTART037"}),
        ("event: PodFailed", "event: Podfailed", {"RESTART036", "RESTART038"}),
        ("          restartPolicy: Never\n", "", {"RESTART004"}),
    ],
)
def test_a_volcano_job(text: str, instead: str, expected: set[str]) -> None:
    assert text in VOLCANO
    assert rules(VOLCANO.replace(text, instead), "RESTART") == expected


@pytest.mark.parametrize(
    ("text", "instead", "expected"),
    [
        ("", "", set()),
        ("containerName: trainer", "containerName: main", {"RESTART010"}),
        ("action: FailJob", "action: FailIndex", {"RESTART010"}),
        ("values: [1]", "values: [0, 1]", {"RESTART010"}),
        ("values: [1]", "values: [137]", set()),  # the kernel killed the whole container
        ("restartPolicy: Never", "restartPolicy: OnFailure", {"RESTART010"}),
        ("command: [torchrun", "command: [python", set()),
    ],
)
def test_a_pod_failure_policy(text: str, instead: str, expected: set[str]) -> None:
    manifest = JOB.replace("  backoffLimit: 0\n", "  " + POLICY)
    assert text in manifest
    assert rules(manifest.replace(text, instead), "RESTART") == expected


def test_two_replicas_of_one_text_are_told_of_in_one_order() -> None:
    """An alias puts both findings into one place; which of them spoke was up to the hash seed of the run."""
    shared = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master: &replica
      replicas: 1
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: pytorch, image: train:1.4.2, command: [torchrun, train.py]}]}}
    Worker: *replica
"""
    code = "import sys; from argosy.workflows.lint.linter import lint; from argosy.workflows.manifests.reading import "
    code += "read_text; print([each.message for each in lint([read_text(sys.stdin.buffer.read(), 'x.yaml')])])"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=shared,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(4)
    }
    assert len(said) == 1
    assert "Master: restartPolicy" in said.pop()
