"""What something else may supply is a note: a server's launcher, a Job's count, gates, scripts. Two sets in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: chat}}}}
  template:
    metadata: {{labels: {{app: chat}}}}
    spec:
      containers:
        - name: chat
          image: r/chat:1
          command: [torchrun, {script}]
          livenessProbe: {{httpGet: {{path: /health, port: 5000}}}}
          resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: train}}
spec:
  replicatedJobs:
    - name: workers
      template:
        spec:
          completions: 2
          parallelism: 2
          backoffLimit: 0
          template:
            spec:
              {more}
              containers:
                - name: train
                  image: r/train:latest
                  command: [sh, -c, "{script}"]
                  resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
RANKS = "torchrun --nnodes=2 --nproc-per-node={} --master-addr=train-workers-0-0.train train.py"


def warned(text: str, *families: str) -> set[str]:
    return {each[0] for each in found(text, *families) if each[1] != "note"}


@pytest.mark.parametrize(("script", "expected"), [("web.py", set()), ("train.py", {"GANG021"})])
def test_a_launcher_may_start_a_server(script: str, expected: set[str]) -> None:
    assert warned(SERVER.format(script=script), "GANG", "RESTART") == expected


@pytest.mark.parametrize(
    ("script", "more", "expected"),
    [
        (RANKS.format(8), "", {"GANG012", "MEM001", "SEC013"}),
        (RANKS.format(1), "", {"GANG012", "SEC013"}),  # one process hands nothing to another
        (RANKS.format(8), "schedulingGates: [{name: example.org/whole}]", {"MEM001", "SEC013"}),
        ("sleep 60000", "", set()),
    ],
)
def test_what_is_warned_of_ranks(script: str, more: str, expected: set[str]) -> None:
    assert warned(JOBSET.format(script=script, more=more), "GANG", "MEM", "RESTART", "SEC") == expected


@pytest.mark.parametrize(("value", "expected"), [("XXXX", []), ("4f1c0e5a", ["warning"])])
def test_crosses_are_no_key(value: str, expected: list[str]) -> None:
    assert [each[1] for each in found(pod(f"env: [{{name: API_KEY, value: {value}}}]"), "SEC")] == expected


@pytest.mark.parametrize(
    ("name", "level"), [("TORCH_DISTRIBUTED_BACKEND", "note"), ("TORCH_NCCL_ASYNC_ERROR_HANDELING", "warning")]
)
def test_a_script_may_read_a_variable_that_torch_does_not(name: str, level: str) -> None:
    assert [each[1] for each in found(pod(f"env: [{{name: {name}, value: '1'}}]"), "TORCH")] == [level]


@pytest.mark.parametrize(("value", "level"), [("$BUCKET", "note"), ("/x:$PATH", "warning"), ("$FIRST/y", "warning")])
def test_a_name_alone_is_envsubsts_to_fill_in(value: str, level: str) -> None:
    text = pod(f"env: [{{name: FIRST, value: a}}, {{name: SECOND, value: '{value}'}}]")
    assert [each[1] for each in found(text, "ARGV")] == [level]


def test_a_field_of_a_newer_release_is_a_note_and_one_of_a_pod_is_not() -> None:
    job = JOBSET.format(script="run", more="nodeSelektor: {a: b}").replace(
        "  replicatedJobs", "  novelty: 1\n  replicatedJobs"
    )
    assert {(each[1], each[2]) for each in found(job, "API")} == {("note", 5), ("error", 15)}
