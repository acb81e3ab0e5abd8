"""What the sets of public manifests from the twenty-fifth on showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_missed import HEAD, fill
from tests.lint.test_ruined_runs import VOLCANO

QUEUES = "---\n".join(
    f"apiVersion: kueue.x-k8s.io/v1beta1\nkind: {each}Queue\nmetadata: {{name: q}}\n" for each in "AB"
)
TFJOB = fill(HEAD, "kubeflow.org/v1", "TFJob") + (
    "  @: 2\n  tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: 'r/x:1'}]}}}}\n"
)
MPI = (
    fill(HEAD, "kubeflow.org/v2beta1", "MPIJob") + "  runPolicy: {cleanPodPolicy: Running}\n  slotsPerWorker: 8\n"
    "  mpiReplicaSpecs:\n"
    "    Launcher: {template: {spec: {containers: [{name: l, image: 'r/x:1', command: [mpirun, -n, '2'@, a.out]}]}}}\n"
    "    Worker: {replicas: 2, template: {spec: {containers: [{name: w, image: 'r/x:1'}]}}}\n"
)
JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: @}\nspec:\n@"
    "  template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'r/x:1', env: [{name: A, value: @}]}]}}\n"
)


def shown(text: str) -> list[tuple[str, str]]:
    found = lint([read_text(text.encode(), "manifest.yaml")])
    return [(each.rule, each.level.word) for each in found if each.level > Level.NOTE]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fill(JOB, "{job_id}", "", "{run_id}"), [("YAML001", "warning")]),
        (fill(JOB, "train-this_is_placeholder", "", "x"), []),
        (fill(JOB, "train", "  ....\n    x\n", "x"), [("YAML001", "warning")]),
        (fill(JOB, "train", "  [...]\n", "x"), [("YAML001", "warning")]),
        (fill(VOLCANO, "svc: []", "mpirun, a.out", "a").replace("name: c,", "name: c, args: [sshd],"), []),
        (fill(VOLCANO, "svc: []", "mpirun, a.out", "a"), [("RESTART036", "warning"), ("RESTART004", "warning")]),
        (fill(MPI, ""), [("REND052", "warning")]),
        (fill(MPI, ", -N, '1'"), []),
        (fill(HEAD, "kubeflow.org/v1beta1", "MXJob"), [("API001", "error")]),
        (fill(HEAD, "trainer.kubeflow.org/v2alpha1", "TrainJob"), [("API001", "error")]),
        (fill(HEAD, "kubeflow.org/v2alpha1", "ClusterTrainingRuntime"), [("API001", "error")]),
        (
            fill(MPI, "").replace(
                "'r/x:1'}]}}}\n", "'r/x:1', volumeMounts: [{name: d, mountPath: ~/d}]}], volumes: [{name: d}]}}}\n"
            ),
            [("REND052", "warning"), ("STORE002", "warning")],
        ),
        (QUEUES, [("API001", "warning")]),
        (fill(TFJOB, "maxInstances"), [("API002", "warning")]),
        (fill(TFJOB, "max-instances"), []),
    ],
)
def test_what_is_said_by_default(text: str, expected: list[tuple[str, str]]) -> None:
    assert shown(text) == expected


def test_a_version_that_is_gone_is_one_finding_of_a_file() -> None:
    found = [each for each in lint([read_text(QUEUES.encode(), "queues.yaml")]) if each.rule == "API001"]
    assert [each.message.partition(" (")[2] for each in found] == ["also on line 5)"]


@pytest.mark.parametrize(("image", "told"), [("DOCKER_IMAGE", False), ("r/x", True)])
def test_an_image_that_a_script_names_has_no_tag_to_miss(image: str, told: bool) -> None:
    text = fill(VOLCANO, "svc: []", "mpirun, a.out", "a").replace("r/x:1", image)
    assert (("SEC013", "warning") in shown(text)) == told
