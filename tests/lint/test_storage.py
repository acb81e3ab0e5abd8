"""Volumes, claims and where checkpoints go: small manifests, both ways."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ckpt}
spec: {accessModes: [%s], storageClassName: %s, resources: {requests: {storage: 1Gi}}}
---
"""
GANG = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: &template {spec: {containers: [{name: pytorch, image: "r/x:1", volumeMounts: [{name: c, mountPath: /c}]}], volumes: [{name: c, persistentVolumeClaim: {claimName: ckpt}}]}}}
    Worker: {replicas: %s, template: *template}
"""  # noqa: E501


def store(text: str) -> list[tuple[str, str]]:
    return [(rule, level) for rule, level, _ in found(text, "STORE")]


@pytest.mark.parametrize(
    ("mode", "workers", "expected"),
    [
        ("ReadWriteMany", "3", []),
        ("ReadWriteOnce", "3", [("STORE011", "warning")]),
        ("ReadWriteOnce", "'3'", [("STORE011", "warning")]),
        ("ReadWriteOnce", "0", []),
        ("ReadWriteOncePod", "1", [("STORE011", "error")]),
        ("ReadWriteOnce, ReadWriteMany", "3", []),
        ("${MODE}", "3", []),
    ],
)
def test_how_many_pods_mount_a_claim(mode: str, workers: str, expected: list[tuple[str, str]]) -> None:
    assert store(CLAIM % (mode, "nfs") + GANG % workers) == expected


@pytest.mark.parametrize(
    ("mode", "storage", "expected"),
    [
        ("ReadWriteMany", "gp3", ["STORE013"]),
        ("ReadWriteOnce", "gp3", []),
        ("ReadWriteMany", "efs-sc", []),
        ("ReadWriteMany", "''", []),
    ],
)
def test_a_disk_for_many(mode: str, storage: str, expected: list[str]) -> None:
    assert [rule for rule, _ in store(CLAIM % (mode, storage))] == expected


def test_the_class_among_the_files_decides() -> None:
    kind = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: %s\n---\n"
    assert store(kind % "efs.csi.aws.com" + CLAIM % ("ReadWriteMany", "gp3")) == []
    assert store(kind.replace("gp3", "fast") % "ebs.csi.aws.com" + CLAIM % ("ReadWriteMany", "fast")) == [
        ("STORE013", "warning")
    ]


@pytest.mark.parametrize(
    ("container", "spec", "expected"),
    [
        ("command: [python, t.py, --output-dir=/out]", "", [("STORE015", "warning")]),
        ("command: [python, t.py, --output_dir, /out]", "", [("STORE015", "warning")]),
        ("command: [sh, -c, 'torchrun t.py --save /out/x']", "", [("STORE015", "warning")]),
        ("command: [python, t.py, --output-dir=out]", "", []),
        ("command: [python, t.py, --output-dir=s3://b/x]", "", []),
        ("command: [python, t.py, --resume-from-checkpoint=/x]", "", []),
        ("command: [python, eval.py, --checkpoint-path=/x]", "", []),
        ("env: [{name: CKPT_DIR, value: /out}]", "", [("STORE015", "warning")]),
        ("env: [{name: CKPT_DIR, value: $(BASE)/out}]", "", []),
        (
            "command: [python, t.py, --output-dir=/o/run1]\nvolumeMounts: [{name: o, mountPath: /o/}]",
            "volumes: [{name: o, nfs: {server: s, path: /}}]",
            [],
        ),
        (
            "command: [python, t.py, --output-dir=/o/run1]\nvolumeMounts: [{name: o, mountPath: /o, readOnly: true}]",
            "volumes: [{name: o, nfs: {server: s, path: /}}]",
            [("STORE016", "warning")],
        ),
        (
            "command: [python, t.py, --output-dir=/o2]\nvolumeMounts: [{name: o, mountPath: /o}]",
            "volumes: [{name: o, nfs: {server: s, path: /}}]",
            [("STORE015", "warning")],
        ),
        (
            "command: [python, t.py, --output-dir=/o]\nvolumeMounts: [{name: o, mountPath: /o}]\n"
            "- {name: upload, command: [push], volumeMounts: [{name: o, mountPath: /o}]}",
            "volumes: [{name: o, emptyDir: {}}]",
            [],
        ),
    ],
)
def test_where_checkpoints_go(container: str, spec: str, expected: list[tuple[str, str]]) -> None:
    assert store(pod(container, spec).replace("      - {name: upload", "    - {name: upload")) == expected


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ("{name: nope, mountPath: /x}", [("STORE001", "error")]),
        ("{name: '{{v}}', mountPath: /x}", []),
        ("{name: o, mountPath: /x, subPath: $(POD)}", [("STORE003", "warning")]),
        ("{name: o, mountPath: /x, subPathExpr: $(KNOWN)}", []),
        ("{name: o, mountPath: /x}, {name: o, mountPath: /x, subPath: y}", [("STORE002", "error")]),
        ("null", []),
        ("[]", []),
    ],
)
def test_mounts(mount: str, expected: list[tuple[str, str]]) -> None:
    body = f"env: [{{name: KNOWN, value: x}}]\nvolumeMounts: [{mount}]"
    got = store(pod(body, "volumes: [{name: o, nfs: {server: s, path: /}}]"))
    assert got == expected


def test_an_indexed_job_knows_its_index_without_env() -> None:
    text = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  template:
    spec:
      containers:
        - {name: t, volumeMounts: [{name: o, mountPath: /o, subPathExpr: $(JOB_COMPLETION_INDEX)}]}
      volumes: [{name: o, nfs: {server: s, path: /}}]
"""
    assert store(text) == []


def test_mpirun_writes_in_the_workers() -> None:
    text = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, command: [mpirun, python, t.py, --output-dir, /o]}]}}}
    Worker:
      replicas: 2
      template:
        spec:
          containers: [{name: w, volumeMounts: [{name: o, mountPath: /o}]}]
          volumes: [{name: o, %s}]
"""
    assert store(text % "nfs: {server: s, path: /}") == []
    assert store(text % "emptyDir: {}") == [("STORE015", "warning")]
