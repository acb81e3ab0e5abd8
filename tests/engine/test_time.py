"""Deadlines, suspension and locks (facts 8, 20, 22)."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from argosy.workflows.engine.api import RunOptions, WorkflowState, run


def test_a_templates_deadline_ends_the_pod(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        "- name: main\n  activeDeadlineSeconds: 0.3\n  container: {image: i, command: [sleep, '60']}\n".replace(
            "0.3", "'1'"
        )
    )
    assert (found.phase, found["wf"].exit_code) == ("Failed", 143)
    assert found.message == "Pod was active on the node longer than the specified deadline"
    assert found["wf"].finished - found["wf"].started < 10


def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          timeout: 300ms
          container: {image: i, command: [sh, -c, "trap '' TERM; sleep 60 & while :; do wait; done"]}
        """,
        "entrypoint: main\npodSpecPatch: '{terminationGracePeriodSeconds: 1}'",
    )
    assert (found.phase, found["wf"].exit_code) == ("Failed", 137)


def test_the_workflows_deadline_fails_what_runs_and_what_is_to_come(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: nap, arguments: {parameters: [{name: seconds, value: "60"}]}}
          - - {name: b, template: ok}
        """,
        "entrypoint: main\nactiveDeadlineSeconds: 1\nonExit: ok",
    )
    assert (found["[0].a"].phase, found["[0].a"].message) == ("Failed", "Step exceeded its deadline")
    assert found["[0].a"].exit_code is None
    assert found[".onExit"].phase == "Succeeded"
    assert found.phase == "Failed"


def test_after_the_workflows_deadline_the_exit_handler_is_not_retried_either(run_workflow: Callable[..., Any]) -> None:
    """processNodeRetries of 4.0.7, which prints the deadline as Go prints a time."""
    found = run_workflow(
        """
        - name: main
          container: {image: i, command: [sleep, "60"]}
        - name: tidy
          retryStrategy: {limit: 2, retryPolicy: Always}
          container: {image: i, command: ["false"]}
        """,
        "entrypoint: main\nactiveDeadlineSeconds: 1\nonExit: tidy",
    )
    assert [name for name in found.by_name if name.startswith(".onExit")] == [".onExit", ".onExit(0)"]
    said = r"retry exceeded workflow deadline \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC"
    assert re.fullmatch(said, found[".onExit"].message)
    assert found.phase == "Failed"


def test_a_step_that_waits_beyond_its_timeout_fails_its_group_with_that_word(run_workflow: Callable[..., Any]) -> None:
    """executeStepGroup of 4.0.7."""
    found = run_workflow(
        """
        - name: main
          steps:
          - - {name: a, template: holds}
            - {name: b, template: waits}
        - name: holds
          synchronization: {mutexes: [{name: m}]}
          container: {image: i, command: [sleep, "60"]}
        - name: waits
          timeout: 300ms
          synchronization: {mutexes: [{name: m}]}
          container: {image: i, command: ["true"]}
        """
    )
    assert (found["[0].b"].phase, found["[0].b"].message) == ("Failed", "timeout")
    assert (found["[0]"].phase, found["[0]"].message) == ("Failed", "timeout")
    assert (found.phase, found.message) == ("Failed", "timeout")


def test_a_deadline_may_be_a_month_away(run_workflow: Callable[..., Any]) -> None:
    """2.6e9 ms are more than poll takes: the engine ended with a traceback."""
    found = run_workflow("- name: main\n  container: {image: i, command: [sleep, '0.3']}\n",
                         "entrypoint: main\nactiveDeadlineSeconds: 2592000")  # fmt: skip
    assert found.phase == "Succeeded"


def test_suspend_with_duration(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow("- name: main\n  suspend: {duration: 300ms}\n")
    assert (found.phase, found["wf"].type, found["wf"].message) == ("Succeeded", "Suspend", "")
    assert found["wf"].finished - found["wf"].started >= 0.3


def test_a_mutex_serializes_nodes(run_workflow: Callable[..., Any]) -> None:
    found = run_workflow(
        """
        - name: main
          dag:
            tasks:
            - {name: a, template: critical}
            - {name: b, template: critical}
        - name: critical
          synchronization: {mutexes: [{name: m}]}
          container: {image: i, command: [sleep, "0.2"]}
        """
    )
    first, second = sorted((found[".a"], found[".b"]), key=lambda node: node.finished)
    # The second node exists, Pending, while the first runs; its pod must not.
    assert second.finished - first.finished >= 0.2
    assert found.phase == "Succeeded"


def test_pods_that_waited_for_a_semaphore_run_side_by_side(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    text = make_workflow(
        """
        - name: main
          dag:
            tasks:
            - name: a
              template: critical
              withItems: [0, 1, 2, 3]
              arguments: {parameters: [{name: i, value: "{{item}}"}]}
        - name: critical
          inputs: {parameters: [{name: i}]}
          synchronization: {semaphores: [{configMapKeyRef: {name: c, key: two}}]}
          container: {image: i, command: [sh, -c, "echo $0; sleep 0.3", "{{inputs.parameters.i}}"]}
        """
    )
    config = b"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {two: '2'}}"
    state = run(text + config, RunOptions(state_dir=tmp_path))
    pods = sorted((node for node in state.nodes.values() if node.type == "Pod"), key=lambda node: node.finished)
    assert (state.phase, len(pods)) == ("Succeeded", 4)
    assert sorted(Path(node.log).read_text() for node in pods) == ["0\n", "1\n", "2\n", "3\n"], "a log each"
    assert pods[2].finished - pods[0].finished >= 0.3, "two at a time"


def test_a_mutex_holds_between_engines(tmp_path: Path, make_workflow: Callable[..., bytes]) -> None:
    text = make_workflow(
        "- name: main\n  container: {image: i, command: [sleep, '0.4']}\n",
        "entrypoint: main\nsynchronization: {mutexes: [{name: between}]}",
    )
    seen: list[tuple[str, str]] = []
    ended: dict[str, WorkflowState] = {}

    def go(name: str) -> None:
        def watch(state: WorkflowState) -> None:
            seen.append((state.phase, state.message))

        ended[name] = run(text, RunOptions(state_dir=tmp_path, workflow_name=name), watch)

    threads = [threading.Thread(target=go, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert [ended[name].phase for name in ("one", "two")] == ["Succeeded"] * 2
    assert ended["two"].nodes["two"].started >= ended["one"].nodes["one"].finished
    assert ("Pending", "Waiting for argo/Mutex/between lock. Lock status: 0/1") in seen
