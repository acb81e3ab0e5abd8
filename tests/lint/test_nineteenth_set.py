"""What the nineteenth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found

HELD = """\
apiVersion: v1
kind: Pod
metadata: {{name: gpu}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: gpu
      image: r/cuda:1
      command: [sh, -c, "{script}"]
      env: [{{name: A, value: "1"}}, {{name: A, value: "{value}"}}]
      resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""


@pytest.mark.parametrize(("value", "level"), [("1", "note"), ("2", "warning")])
def test_a_variable_that_is_set_twice_alike_loses_nothing(value: str, level: str) -> None:
    told = found(HELD.format(script="run", value=value), "ARGV")
    assert [each[1] for each in told if each[0] == "ARGV032"] == [level]
