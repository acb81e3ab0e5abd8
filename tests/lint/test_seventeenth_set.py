"""What the seventeenth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

RANKS = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: r/train:1
              command: [sh, -c, "pip install ninja && pip install vllm && torchrun train.py"]
"""


@pytest.mark.parametrize(("name", "expected"), [("FILLED_IN_LATER", []), ("GPU", ["API011"])])
def test_a_resource_that_a_program_names_is_no_error(name: str, expected: list[str]) -> None:
    text = pod(f"command: [python, train.py]\nresources: {{limits: {{{name}: 1}}}}")
    assert [each[0] for each in found(text, "API")] == expected


def test_all_that_the_ranks_install_is_one_finding() -> None:
    assert [each[0] for each in found(RANKS, "SEC") if each[0] == "SEC020"] == ["SEC020"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [("import torch; a.to('cuda:1')", []), ("import torch.distributed as d; d.run()", ["MEM001"])],
)
def test_a_look_at_two_gpus_needs_no_shared_memory(code: str, expected: list[str]) -> None:
    text = pod(f'command: [python3, -c, "{code}"]\nresources: {{limits: {{nvidia.com/gpu: 2}}}}')
    assert [each[0] for each in found(text, "MEM") if each[0] == "MEM001"] == expected


@pytest.mark.parametrize(("more", "level"), [("", "warning"), ("backend: embedded", "note")])
def test_a_release_that_knows_a_field_more_may_ask_for_one_less(more: str, level: str) -> None:
    text = f"""\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: ray}}
spec:
  gcsFaultToleranceOptions: {{{more}}}
  headGroupSpec:
    rayStartParams: {{}}
    template: {{spec: {{containers: [{{name: ray-head, image: r/ray:2.9.0}}]}}}}
"""
    assert [each[1] for each in found(text, "API") if each[0] == "API005"] == [level]
