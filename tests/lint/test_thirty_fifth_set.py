"""What the thirty-fifth set of public manifests showed to be wrong, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_twenty_eighth_set import said

OPERATOR = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: j}}
spec:
  elasticPolicy: {elastic}
  pytorchReplicaSpecs:
    Worker:
      replicas: 8
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - {{name: pytorch, image: "r/x:1", args: [--backend{backend}], resources: {{limits: {{nvidia.com/gpu: 1}}}}}}
"""
RAY = """apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: r}}
spec:
  rayVersion: "{said}"
  headGroupSpec: {{template: {{spec: {{containers: [{{name: h, image: "rayproject/ray:2.6.1-py310"}}]}}}}}}
"""


@pytest.mark.parametrize(
    ("elastic", "backend", "expected"),
    [
        ("{minReplicas: 8}", ", nccl", {"GANG012"}),
        ("{minReplicas: 1}", ", nccl", set()),  # it starts with what there is
        ("", ", nccl", {"GANG012", "RESTART002"}),
        ("", ", mpi", {"GANG012"}),  # no rank waits for NCCL
        ("", "=mpi", {"GANG012"}),
    ],
)
def test_who_waits_for_whom(elastic: str, backend: str, expected: set[str]) -> None:
    found = {rule for rule, _ in said(OPERATOR.format(elastic=elastic, backend=backend))}
    assert found & {"GANG012", "RESTART002"} == expected


@pytest.mark.parametrize(
    ("version", "wrong"), [("2.6.1-py310", False), ("2.6.1", False), ("2.9.0-py310", True), ("x", True)]
)
def test_the_tag_of_an_image_says_its_ray(version: str, wrong: bool) -> None:
    assert ("RAY004" in {rule for rule, _ in said(RAY.format(said=version))}) == wrong


@pytest.mark.parametrize(
    ("value", "level"), [("{ claimName: ${CLAIM} }", "warning"), ("{ a: b } }", "error"), ("{ claimName: a", "error")]
)
def test_envsubst_fills_in_a_mapping_in_braces(value: str, level: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  volumes:\n  - persistentVolumeClaim: {value}\n"
    found = lint([read_text(text.encode(), "pod.yaml")])
    assert [each.level.word for each in found if each.rule == "YAML001"] == [level]


@pytest.mark.parametrize(
    ("more", "expected"), [("min-instances: 1", "warning"), ("min-instances: 1, max-instances: 2", "note")]
)
def test_two_fields_that_no_release_has_are_a_forks(more: str, expected: str) -> None:
    spec = f"{{cleanPodPolicy: None, {more}, tfReplicaSpecs: {{}}}}"
    text = f"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {{name: t_1}}\nspec: {spec}\n"
    levels = {each.rule: each.level.word for each in lint([read_text(text.encode(), "t.yaml")])}
    assert (levels["API006"], levels["API008"]) == (expected, "warning")  # a fork's objects have names, too
