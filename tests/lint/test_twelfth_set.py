"""What the twelfth set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

KEPT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: kept}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: kept}}}}
  template:
    metadata: {{labels: {{app: kept}}}}
    spec:
      containers:
        - name: kept
          image: {image}
          command: {command}
          env: [{{name: URI, value: a}}, {{name: NAME, value: "${{URI}}"}}]
          volumeMounts: [{{name: data, mountPath: /data}}]
      volumes: [{{name: data, hostPath: {{path: /home/me/data}}}}]
"""
RAY = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {{name: train}}
spec:
  entrypoint: python train.py
  {field}
  rayClusterSpec:
    headGroupSpec:
      rayStartParams: {{}}
      template: {{spec: {{containers: [{{name: h, image: r/x:1, resources: {{limits: {{{device}: 1}}}}}}]}}}}
"""


def kept(command: str = "[serve]", image: str = "r/x:1") -> str:
    return KEPT.format(command=command, image=image)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("[python, -m, workers.run_worker, training]", []),
        ("[python, train_consumer.py]", []),
        ("[python, train.py, --num_workers=4]", [("GANG021", "warning")]),
        ("[python, /code/train.py, --worker, a]", [("GANG021", "warning")]),
        ("[python, src/training_loop.py]", [("GANG021", "note")]),
    ],
)
def test_what_waits_for_work_is_meant_to_stay(command: str, expected: list[tuple[str, str]]) -> None:
    assert [each[:2] for each in found(kept(command), "GANG")] == expected


@pytest.mark.parametrize("command", ["[serve]", "[python, train.py]"])
def test_a_directory_of_the_node_may_be_one_that_all_nodes_mount(command: str) -> None:
    assert [each[:2] for each in found(kept(command), "STORE")] == [("STORE009", "note")]


@pytest.mark.parametrize(
    ("field", "device", "level"),
    [
        ("shutdownAfterJobFinishes: false", "nvidia.com/gpu", "note"),
        ("", "google.com/tpu", "warning"),
        ("", "cpu", "note"),  # a sample, which holds nothing dear
    ],
)
def test_a_default_that_is_written_was_thought_of(field: str, device: str, level: str) -> None:
    assert [each[:2] for each in found(RAY.format(field=field, device=device), "RESTART")] == [("RESTART033", level)]


@pytest.mark.parametrize(("image", "level"), [("r/x:1", "warning"), ("r/x:${TAG}", "note"), ("$PROJECT/x:1", "note")])
def test_variables_of_a_file_that_envsubst_fills_in(image: str, level: str) -> None:
    assert [each[:2] for each in found(kept(image=image), "ARGV")] == [("ARGV022", level)]


def test_a_variable_of_another_object_of_the_file_makes_it_envsubst_s() -> None:
    text = pod("command: [serve, $PROJECT]") + "---\n" + pod().replace("registry.example", "gcr.io/$PROJECT")
    assert not found(text, "ARGV")


def test_what_helm_fills_in_without_quotes_has_no_type() -> None:
    text = pod("env:\n  - {name: HOST, value: 1}\n  - name: PORT\n    value: {{ .Values.port }}")
    assert [each[:2] for each in found(text, "ARGV", "YAML")] == [
        ("ARGV030", "warning"),
        ("ARGV030", "note"),
        ("YAML001", "warning"),
    ]


def test_two_objects_without_a_line_between_them_are_one_finding() -> None:
    one = pod()
    assert found(one + one.replace("train", "other"), "YAML") == [("YAML002", "error", 10)]


CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: train}}
spec:
  replicas: {count}
  selector: {{matchLabels: {{app: train}}}}
  template:
    metadata: {{labels: {{app: train}}}}
    spec:
      containers:
        - name: train
          image: r/x:1
          volumeMounts: [{{name: a, mountPath: /a}}, {{name: b, mountPath: /b}}]
      volumes:
        - {{name: a, persistentVolumeClaim: {{claimName: data}}}}
        - {{name: b, persistentVolumeClaim: {{claimName: data}}}}
"""


@pytest.mark.parametrize(("count", "expected"), [(1, []), (2, [("STORE011", "warning")])])
def test_two_volumes_of_one_pod_are_one_pod_of_the_claim(count: int, expected: list[tuple[str, str]]) -> None:
    assert [each[:2] for each in found(CLAIM.format(count=count), "STORE")] == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("[serve, '${CORPUS}']", [("ARGV021", "note")]),
        ("[serve, $HOME]", [("ARGV021", "warning")]),
        ("[serve, $HOME, '${CORPUS}']", [("ARGV021", "warning"), ("ARGV021", "note")]),
        ('[bash, -c, "python greeting_service.py || echo failed"]', []),
        ('[bash, -c, "python train.py || echo failed"]', [("ARGV041", "warning")]),
    ],
)
def test_what_a_command_means(command: str, expected: list[tuple[str, str]]) -> None:
    assert [each[:2] for each in found(pod(f"command: {command}"), "ARGV")] == expected


@pytest.mark.parametrize(("command", "expected"), [("--version", []), ("python train.py", [("ARGV040", "warning")])])
def test_a_program_that_is_asked_for_its_version_starts_nothing(command: str, expected: list[tuple[str, str]]) -> None:
    text = pod(f'command: [bash, -c, "mpirun {command} | tee log"]')
    assert [each[:2] for each in found(text, "ARGV") if each[0] == "ARGV040"] == expected
