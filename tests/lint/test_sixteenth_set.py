"""What the sixteenth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, levels, pod

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: serve}}}}
  template:
    metadata: {{labels: {{app: serve}}}}
    spec:
      containers: [{{name: serve, image: r/serve:1, {command}resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]
"""
DUMP = """\
apiVersion: v1
kind: Pod
metadata: {{name: train{uid}}}
spec: {{containers: [{{image: r/train:1}}]}}
"""


@pytest.mark.parametrize(
    ("first", "last", "level"),
    [
        ("[{name: a}]", "[{name: b}, {name: a}]", "note"),
        ("[{name: a}]", "[{name: a, emptyDir: {}}, {name: b}]", "note"),
        ("[{name: a}, {name: c}]", "[{name: b}, {name: a}]", "warning"),
    ],
)
def test_a_list_that_stands_again_within_a_longer_one_loses_nothing(first: str, last: str, level: str) -> None:
    assert levels(f"apiVersion: v1\nkind: Other\nspec:\n  volumes: {first}\n  volumes: {last}\n", "YAML002") == [level]


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_command_that_is_a_text_is_said_once(containers: str) -> None:
    text = pod("", 'initContainers: [{name: a, image: r/a:1, command: "git clone x"}]').replace(
        "initContainers", containers
    )
    text = text if containers == "initContainers" else pod('command: "git clone x"')
    assert [each[0] for each in found(text, "API", "ARGV") if each[1] == "error"] == ["ARGV003"]


@pytest.mark.parametrize(("uid", "level"), [("", "warning"), (", uid: 1-2", "note")])
def test_what_a_server_printed_was_shortened(uid: str, level: str) -> None:
    assert levels(DUMP.format(uid=uid), "API005") == [level]


@pytest.mark.parametrize(
    ("command", "gpus", "level"),
    [
        ("", "4", "note"),
        ("command: [python, serve.py], ", '"$COUNT"', "note"),
        ("command: [vllm, serve], ", "4", "note"),
    ],
)
def test_a_server_whose_gpus_may_be_strangers(command: str, gpus: str, level: str) -> None:
    assert levels(SERVER.format(command=command, gpus=gpus), "MEM001") == [level]


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        ("{name: NCCL_IB_HCA, value: 'rdma0,rdma1'}", "NCCL027"),
        ("{name: NCCL_IB_HCA, value: mlx5}", "NCCL027"),
        ("{name: NCCL_IB_TIMEOUT, value: '23'}", "NCCL031"),
        ("{name: NCCL_IB_TIMEOUT, value: '25'}", "NCCL031"),
    ],
)
def test_a_habit_of_a_site_is_worth_knowing(variables: str, rule: str) -> None:
    text = f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          hostNetwork: true
          containers:
            - name: pytorch
              image: r/train:1
              command: [torchrun, train.py]
              securityContext: {{privileged: true}}
              env: [{variables}]
              resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
    assert levels(text, rule) == ["note"]
