"""What the thirty-seventh set of public manifests, and the noise left before it, showed, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from tests.lint.rules_table import pod
from tests.lint.test_twenty_eighth_set import said

WORKFLOW = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: a-}\nspec:\n  entrypoint: m\n"
    "  templates:\n  - {name: m, retryStrategy: {limit: 3, retryPolicy: Always, backoff: {maxDuration: 1h}},\n"
    "     container: {image: 'r/x:1', command: [%s]}}\n"
)
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      container: [{name: a, image: 'r/x:1'}]\n"
)


def test_a_list_of_containers_that_is_misspelt_is_no_patch() -> None:
    assert ("API002", "error") in said(JOB)


@pytest.mark.parametrize("folder", ["testdata", "expectedfailures", "lint-fail", "lintfail"])
def test_what_must_fail_is_wrong_on_purpose(folder: str) -> None:
    assert said(pod("env: [{name: A, value: 1}]"), f"{folder}/a.yaml") == []


@pytest.mark.parametrize(("command", "level"), [("echo, done", "note"), ("torchrun, t.py", "warning")])
def test_a_step_of_seconds_is_no_training_that_is_not_retried(command: str, level: str) -> None:
    assert ("ARGO016", level) in said(WORKFLOW % command, least=Level.NOTE)
