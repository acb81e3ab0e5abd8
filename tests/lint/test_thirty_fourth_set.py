"""What the thirty-fourth set of public manifests showed to be noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import pod
from tests.lint.test_twenty_eighth_set import said

TWO_NODES = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  minAvailable: 2
  tasks:
  - name: w
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers: [{{name: c, image: "r/x:1", command: {command}, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]
"""


@pytest.mark.parametrize(
    ("name", "command", "seen"),
    [
        ("train", "[python, train.py]", True),
        ("bench-train", "[python, train.py]", True),  # a benchmark runs for hours, and beside others
        ("latest", "[python, train.py]", True),
        ("a", "[python, train.py, --skip-preflight]", True),
        ("a", "[python, train.py, --out, /logs/gpu-test/1]", True),
        ("a", "[python, gpu-test/train.py]", True),
        ("a", '[python, train.py]}, {name: gpu-test-exporter, image: "r/x:1"', True),
        ("a", "[torchrun, smoke/rdma_test.py]", False),
        ("nccl-test", "[python, train.py]", False),
        ("gpu-smoke", "[python, train.py]", False),
        ("rdma", "[python, ddp.py, --sleep_forever=True]", False),
        ("a", "[mpirun, -H, b, ./all_gather_perf, -b, '8']", False),
    ],
)
def test_who_looks_at_a_test_of_the_cluster_sees_it_fail(name: str, command: str, seen: bool) -> None:
    assert ("RESTART036" in {rule for rule, _ in said(TWO_NODES.format(name=name, command=command))}) == seen


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NCCL_IB_HCA", "mlx5", []),
        ("NCCL_P2P_DISABLE", "'1'", []),
        ("NCCL_ALGO", "'Ring,Tree'", []),
        ("NCCL_ALGO", "Tree", [("NCCL040", "warning")]),  # its first broadcast fails, on each site
        ("NCCL_MNNVL_ENABLE", "'1'}, {name: NCCL_CUMEM_ENABLE, value: '0'", [("NCCL044", "warning")]),
        ("NCCL_SOCKET_IFNAM", "eth0", [("NCCL008", "warning")]),  # nothing reads it, on no site
    ],
)
def test_what_a_site_says_of_its_network_is_its_own(name: str, value: str, expected: list[tuple[str, str]]) -> None:
    text = pod(f"command: [torchrun, train.py]\nenv: [{{name: {name}, value: {value}}}]")
    assert [each for each in said(text) if each[0].startswith("NCCL")] == expected
