"""What the fifteenth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import levels, pod

OBJECT = """\
apiVersion: {version}
kind: {kind}
metadata: {{name: {name}}}
spec:
  {spec}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      {pod}
      containers:
        - name: {name}
          image: r/{name}:1
          command: {command}
          resources: {resources}
"""
INDEXED = "completionMode: Indexed\n  completions: 4\n  parallelism: 4"
ALONE, RANKS = "[python, run.py]", "[torchrun, --nnodes=4, --master-addr=a, run.py]"
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          template:
            metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool}}
            spec: {containers: [{name: train, image: r/train:1, command: [python, train.py]}]}
"""


def made(
    kind: str, spec: str, pod: str = "restartPolicy: Never", command: str = ALONE, gpus: int = 0, name: str = "work"
) -> str:
    return OBJECT.format(
        version="batch/v1" if kind == "Job" else "apps/v1",
        kind=kind,
        name=name,
        spec=spec,
        pod=pod,
        command=command,
        resources=f"{{limits: {{nvidia.com/gpu: {gpus}}}}}" if gpus else "{}",
    )


def test_a_kustomization_gives_the_selector() -> None:
    assert levels(made("Deployment", "replicas: 1", ""), "API005") == ["note"]


@pytest.mark.parametrize(("where", "level"), [("cloud.google.com/gke-accelerator", "note"), ("gpu", "warning")])
def test_gke_writes_the_limit_of_a_requested_gpu(where: str, level: str) -> None:
    text = pod("command: [python, train.py]\nresources: {requests: {nvidia.com/gpu: 1}}")
    assert levels(text + f"  nodeSelector: {{{where}: a}}\n", "MEM007") == [level]


def test_jobset_reads_its_topology_from_the_pods_too() -> None:
    assert not levels(JOBSET, "GANG003")


@pytest.mark.parametrize(("command", "level"), [(ALONE, "note"), (RANKS, "warning")])
def test_pieces_of_work_are_no_gang(command: str, level: str) -> None:
    many = made("Job", INDEXED, command=command, gpus=2)
    assert levels(many, "GANG012") == [level]
    assert levels(many.replace("r/work:1", "r/work:latest"), "SEC013") == [level]


@pytest.mark.parametrize(
    ("kind", "name", "command", "gpus", "level"),
    [
        ("Job", "work", "[sh, -c, 'echo done']", 0, "note"),
        ("Job", "train", "[sh, -c, 'echo done']", 0, "note"),
        ("Job", "work", ALONE, 0, "warning"),
        ("Job", "work", "[work]", 1, "warning"),
    ],
)
def test_what_harms_a_training_is_a_note_where_nothing_trains(
    kind: str, name: str, command: str, gpus: int, level: str
) -> None:
    mount = "restartPolicy: Never\n      volumes: [{name: a, emptyDir: {}}]"
    text = made(kind, "backoffLimit: 0", mount, command, gpus, name)
    text += "          volumeMounts: [{name: a, mountPath: /dev/shm}]\n"
    text += "          env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]\n"
    assert levels(text, "MEM015") == [level]


@pytest.mark.parametrize(("value", "expected"), [("webhook-secret", []), ("4f1c0e5a", ["warning"])])
def test_the_name_of_a_secret_is_none(value: str, expected: list[str]) -> None:
    assert levels(pod(f"command: [serve, --secret, {value}]"), "SEC017") == expected


@pytest.mark.parametrize(("value", "expected"), [("$HOME/a", ["warning"]), ("n=1\\necho $n\\n", [])])
def test_a_script_in_a_variable_is_for_a_shell(value: str, expected: list[str]) -> None:
    assert levels(pod(f'command: [run]\nenv: [{{name: SCRIPT, value: "{value}"}}]'), "ARGV022") == expected
