"""What a pod sees: its own disk, its volumes, its environment, its artifacts."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_a_pod_sees_only_its_own_disk(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: write}
          - - {name: b, template: read}
        - name: write
          container: {image: i, command: [sh, -c, "echo mine > /tmp/engine-test-x; echo mine > /engine-test-y; cat /tmp/engine-test-x"]}
        - name: read
          container: {image: i, command: [sh, -c, "ls /tmp/engine-test-x /engine-test-y"]}
        """
    )
    assert found.log("[0].a") == "mine\n"
    assert found["[1].b"].phase == "Failed"
    assert not Path("/tmp/engine-test-x").exists()
    assert not Path("/engine-test-y").exists()


def test_claims_are_shared_and_empty_dirs_are_not(run_workflow: Callable[..., Any], tmp_path: Path) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: pod, arguments: {parameters: [{name: do, value: "echo 1 > /data/x; echo 2 > /scratch/x"}]}}
          - - {name: b, template: pod, arguments: {parameters: [{name: do, value: "cat /data/x; test ! -e /scratch/x"}]}}
        - name: pod
          inputs: {parameters: [{name: do}]}
          volumes: [{name: scratch, emptyDir: {}}]
          container:
            image: i
            command: [sh, -c, "{{inputs.parameters.do}}"]
            volumeMounts: [{name: store, mountPath: /data}, {name: scratch, mountPath: /scratch}]
        """,
        "entrypoint: main\nvolumes: [{name: store, persistentVolumeClaim: {claimName: claim}}]",
    )
    assert found.phase == "Succeeded"
    assert found.log("[1].b") == "1\n"
    assert (tmp_path / "state/volumes/claim/x").read_text() == "1\n"


def test_artifacts_travel(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: make, template: make}
            - name: use
              template: use
              depends: make
              arguments:
                artifacts:
                - {name: folder, from: "{{tasks.make.outputs.artifacts.folder}}"}
                - {name: file, from: "{{tasks.make.outputs.artifacts.file}}"}
                - {name: note, raw: {data: "raw {{workflow.name}}"}}
        - name: make
          outputs: {artifacts: [{name: folder, path: /out/d}, {name: file, path: /out/f}, {name: none, path: /out/none, optional: true}]}
          container: {image: i, command: [sh, -c, "mkdir -p /out/d/e; echo deep > /out/d/e/x; echo flat > /out/f"]}
        - name: use
          inputs: {artifacts: [{name: folder, path: /tmp/in/d}, {name: file, path: /tmp/in/f}, {name: note, path: /tmp/in/n}, {name: extra, path: /tmp/in/e, optional: true}]}
          container: {image: i, command: [sh, -c, "cat /tmp/in/d/e/x /tmp/in/f /tmp/in/n; test ! -e /tmp/in/e"]}
        """
    )
    assert found.phase == "Succeeded"
    assert found.log(".use") == "deep\nflat\nraw wf"


def test_a_missing_artifact_is_an_error(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          outputs: {artifacts: [{name: a, path: /out/none}]}
          container: {image: i, command: ["true"]}
        """
    )
    assert found.phase == "Error"
    assert found.message.startswith("wait: Error (exit code 64): failed to save artifact a: ")


def test_environment(run_workflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_SECRET_TOKEN_KEY", "s3cret")
    monkeypatch.setenv("LEAKED", "no")
    found = run_workflow(
        """
        - name: main
          container:
            image: i
            command: [sh, -c, 'echo "$A $B $S $POD ${LEAKED-unset} $0 $1"; pwd', "$(A)-$(NOT_THERE)", "$$(A)"]
            workingDir: /workspace/deep
            env:
            - {name: A, value: "1"}
            - {name: B, value: "<$(A)>"}
            - {name: S, valueFrom: {secretKeyRef: {name: token, key: key}}}
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        """
    )
    assert found.log("wf") == "1 <1> s3cret wf unset 1-$(NOT_THERE) $(A)\n/workspace/deep\n"


def test_termination_message(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        "- name: main\n  container: {image: i, command: [sh, -c, 'printf why > /dev/termination-log; exit 75']}\n"
    )
    assert found.message == "main: Error (exit code 75): why"


def test_a_signal_is_an_exit_code(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  container: {image: i, command: [sh, -c, 'kill -9 $$$$']}\n")
    assert (found["wf"].exit_code, found.message) == (137, "main: Error (exit code 137)")


def test_a_program_that_is_not_there(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  container: {image: i, command: [no-such-program]}\n")
    assert found.phase == "Failed"
    assert found["wf"].exit_code == 64
    assert 'exec: "no-such-program": executable file not found in $PATH' in found.message


def test_our_steps_run_unchanged_and_find_their_paths(run_workflow: Callable[..., Any], tmp_path: Path) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: gate, template: gate}
        - name: gate
          outputs: {parameters: [{name: decision, valueFrom: {path: /argosy/outputs/decision, default: ""}}]}
          container: {image: i, command: [python, -m, argosy.steps.gate], args: [--no-such-flag]}
        """
    )
    assert found["[0].gate"].exit_code == 2
    assert found["[0].gate"].outputs["parameters"] == {"decision": ""}
    assert not os.path.exists("/argosy/outputs/decision")


def test_a_link_to_a_folder_as_an_artifact_reaches_no_pod(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: make}
          - - {name: b, template: use, arguments: {artifacts: [{name: g, from: "{{steps.a.outputs.artifacts.f}}"}]}}
        - name: make
          outputs: {artifacts: [{name: f, path: /tmp/latest}]}
          container: {image: i, command: [sh, -c, "mkdir /tmp/step-1; ln -s step-1 /tmp/latest"]}
        - name: use
          inputs: {artifacts: [{name: g, path: /tmp/g}]}
          container: {image: i, command: ["true"]}
        """
    )
    assert found["[0].a"].phase == "Succeeded"
    assert "artifact g is a link" in found["[1].b"].message
    assert "Argo would keep this pod Pending for ever" in found["[1].b"].message
