"""Memory, /dev/shm and devices: small manifests, both ways."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

SHM = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}]"
MOUNT = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"


def mem(text: str) -> list[tuple[str, str, int]]:
    return found(text, "MEM")


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        ("64Gi", "16Gi", []),
        ("64Gi", "31Gi", []),
        ("64Gi", "32Gi", []),
        ("64Gi", "33Gi", [("MEM003", "note")]),
        ("64Gi", "64Gi", [("MEM003", "note")]),
        ("64Gi", "0.0625Ti", [("MEM003", "note")]),
        ('"68719476736"', "64Gi", [("MEM003", "note")]),
        ("${MEMORY}", "64Gi", []),
        ("64Gi", "{{size}}", []),
        ("64Gi", "64gb", [("MEM012", "error")]),
        ("64GB", "1Gi", [("MEM012", "error")]),
        ("512", "100", [("MEM013", "error")]),
        ("400m", "null", [("MEM002", "note"), ("MEM013", "error")]),
    ],
)
def test_the_size_of_shm_against_the_limit(limit: str, size: str, expected: list[tuple[str, str]]) -> None:
    text = pod(f"command: [python, t.py]\nresources: {{limits: {{memory: {limit}}}}}\n{MOUNT}", SHM % size)
    assert sorted((rule, level) for rule, level, _ in mem(text)) == expected


@pytest.mark.parametrize(
    ("container", "spec", "expected"),
    [
        ("resources: {limits: {nvidia.com/gpu: 2, memory: 9Gi}}", "", [("MEM001", "note", 6)]),
        ("resources: {limits: {nvidia.com/gpu: '2', memory: 9Gi}}", "hostIPC: false", [("MEM001", "note", 6)]),
        ("resources: {limits: {nvidia.com/gpu: 2, memory: 9Gi}}", "hostIPC: true", []),
        ("command: [nvidia-smi]\nresources: {limits: {nvidia.com/gpu: 1, memory: 9Gi}}", "", []),
        ("command: [python, train.py, --num-workers, '8']", "", [("MEM001", "warning", 6)]),
        ("command: [python, train.py, --num-workers=0]", "", []),
        ("command: [python, train.py, data.num_workers=4]", "", [("MEM001", "warning", 6)]),
        (f"{MOUNT}", "volumes: [{name: shm, emptyDir: {}}]", [("MEM004", "warning", 9)]),
        (f"{MOUNT}", "volumes: [{name: shm, emptyDir: {medium: Memory}}]", [("MEM002", "note", 9)]),
        (f"{MOUNT}", "volumes: [{name: shm, hostPath: {path: /dev/shm/}}]", []),
    ],
)
def test_what_lies_at_dev_shm(container: str, spec: str, expected: list[tuple[str, str, int]]) -> None:
    assert mem(pod(container, spec)) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("{requests: {nvidia.com/gpu: 1}, limits: {memory: 1Gi}}", ["MEM007"]),
        ("{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: '1', memory: 1Gi}}", []),
        ("{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2, memory: 1Gi}}", ["MEM007"]),
        ("{requests: {rdma/hca: 1}, limits: {memory: 1Gi}}", ["MEM007"]),
        ("{requests: {hugepages-2Mi: 1Gi, memory: 1Gi}}", ["MEM007"]),
        ("{requests: {nvidia.com/gpu: '{{n}}'}, limits: {memory: 1Gi}}", []),
        ("{limits: {nvidia.com/gpu: 0.5, memory: 1Gi}}", ["MEM011"]),
        ("{limits: {nvidia.com/gpu: 500m, memory: 1Gi}}", ["MEM011"]),
        ("{limits: {nvidia.com/mig-1g.5gb: 1, memory: 1Gi}}", []),
        ("{limits: {cpu: 500m, memory: 1.5Gi}, requests: {cpu: 0.5, memory: 1536Mi}}", []),
        ("{limits: {cpu: 500m, memory: 1Gi}, requests: {cpu: 1}}", ["MEM008"]),
    ],
)
def test_requests_and_limits(resources: str, expected: list[str]) -> None:
    wanted = {"MEM007", "MEM008", "MEM011", "MEM012"}
    rules = [rule for rule, _, _ in mem(pod(f"command: [sleep, '1']\nresources: {resources}"))]
    assert [rule for rule in rules if rule in wanted] == expected


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("{name: NVIDIA_VISIBLE_DEVICES, value: all}", ["MEM015"]),
        ("{name: NVIDIA_VISIBLE_DEVICES, value: void}", []),
        ("{name: NVIDIA_VISIBLE_DEVICES, value: $(X)}", []),
        ("{name: CUDA_VISIBLE_DEVICES, value: '0,1'}", []),
        ("{name: CUDA_VISIBLE_DEVICES, value: '0'}", ["MEM016"]),
        ("{name: CUDA_VISIBLE_DEVICES, value: '2,3'}", ["MEM016"]),
        ("{name: CUDA_VISIBLE_DEVICES, value: GPU-1234}", []),
    ],
)
def test_devices_by_hand(variable: str, expected: list[str]) -> None:
    body = f"command: [nvidia-smi]\nenv: [{variable}]\nresources: {{limits: {{nvidia.com/gpu: 2, memory: 9Gi}}}}"
    rules = [rule for rule, _, _ in mem(pod(f"{body}\n{MOUNT}", SHM % "1Gi"))]
    assert rules == expected


def test_a_runtime_without_shm_is_found_at_the_trainjob() -> None:
    text = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node}]}}}}}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t}
spec:
  runtimeRef: {name: torch}
  trainer: {command: [torchrun, t.py], resourcesPerNode: {limits: {nvidia.com/gpu: 2, memory: 64Gi}}}
"""  # noqa: E501
    assert ("MEM001", "warning") in [each[:2] for each in mem(text)]
    assert not [each for each in mem(text.split("---\n")[1]) if each[0] == "MEM001"]
