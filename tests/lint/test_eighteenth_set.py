"""What the eighteenth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec:
    rayStartParams: {}
  workerGroupSpecs:
    - groupName: workers
      replicas: 2
      rayStartParams: {}
      template: {spec: {schedulerName: other, containers: [{name: ray-worker, image: r/ray:2.9.0}]}}
"""
SKETCH = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: train, resources: {limits: {nvidia.com/gpu: 2}}}]}
"""


def warned(text: str, *families: str) -> list[str]:
    return [each[0] for each in found(text, *families) if each[1] != "note"]


def test_a_head_without_a_template_is_said_once() -> None:
    assert warned(RAY, "API", "GANG") == ["API005"]


def test_a_sketch_of_resources_is_no_pod() -> None:
    assert warned(SKETCH, "API", "MEM") == []


@pytest.mark.parametrize(("name", "expected"), [("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", []), ("NAMES", ["ARGV020"])])
def test_gke_tells_where_the_tpus_are(name: str, expected: list[str]) -> None:
    assert [each[0] for each in found(pod(f"command: [python, train.py, $({name})]"), "ARGV")] == expected
