"""What the record of all sets and the thirty-second showed to be wrong or noise, and its siblings, in small."""

from __future__ import annotations

import pytest

from tests.lint.test_twenty_eighth_set import POD, said


@pytest.mark.parametrize(
    ("folder", "level"), [("keps/672-serial", "warning"), ("proposals", "warning"), ("docs", "error")]
)
def test_a_proposals_sketch_is_a_level_lower(folder: str, level: str) -> None:
    assert said(POD.replace("name: c", "name: C"), f"{folder}/README.md") == [("API010", level)]


@pytest.mark.parametrize(("value", "found"), [("password", False), ("changeMe", False), ("password1", True)])
def test_a_password_that_is_its_name_keeps_nothing(value: str, found: bool) -> None:
    assert said(f"{POD}      env: [{{name: DB_PASSWORD, value: {value}}}]\n") == [("SEC016", "warning")] * found


RAY = """apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: r}
spec:
  headGroupSpec:
    rayStartParams: {num-gpus: "%s"}
    template: {spec: {containers: [{name: h, image: r/x:1, resources: {limits: {%s}}}]}}
"""


@pytest.mark.parametrize(
    ("told", "held", "found"),
    [("4", "cpu: 1", False), ("4", "nvidia.com/gpu: 2", True), ("0", "nvidia.com/gpu: 2", True)],
)
def test_gpus_of_ray_that_nothing_asks_for_may_be_numbers_to_place_tasks_by(told: str, held: str, found: bool) -> None:
    assert (("RAY002", "warning") in said(RAY % (told, held))) is found


SMALL = """apiVersion: %s
kind: %s
metadata: {name: %s}
spec:
  containers:
    - name: c
      image: r/x:1
      command: [%s]
      resources: {limits: {nvidia.com/gpu: 8}}
      volumeMounts: [{name: s, mountPath: /dev/shm}]
  volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 64Mi}}]
"""


@pytest.mark.parametrize(
    ("command", "found"), [("nvidia-smi", False), ("torchrun, --nproc-per-node=8, train.py", True)]
)
def test_shared_memory_of_a_pod_that_trains_nothing(command: str, found: bool) -> None:
    assert (("MEM022", "warning") in said(SMALL % ("v1", "Pod", "p", command))) is found
