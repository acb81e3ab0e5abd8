"""An error is what cannot work whatever stands elsewhere: what something else may supply is a warning."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text

JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  @\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      containers: [{name: c, image: r/x:1, command: [@]}]\n"
)
WORKFLOW = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: a-}\nspec:\n  @\n  templates:\n"
    "  - {name: m, container: {image: r/x:1, command: [echo, '{{workflow.parameters.@}}']}}\n"
)
OLD = (
    "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\nspec: {cleanPodPolicy: None, tfReplicaSpecs: {}}\n"
)


def text(form: str, *values: str) -> str:
    for value in values:
        form = form.replace("@", value, 1)
    return form


@pytest.mark.parametrize(
    ("manifest", "rule", "level"),
    [
        (text(JOB, "completionMode: Indexed", "python"), "GANG019", ""),  # both numbers are 1 then
        (text(JOB, "completionMode: Indexed\n  parallelism: 2", "python"), "GANG019", "error"),
        (text(JOB, "backoffLimit: 0", "torchrun, --nnodes=2, --master-addr=a, t.py"), "REND040", "warning"),
        (text(JOB, "backoffLimit: 0", "python, t.py, '--lr 1'"), "ARGV002", "warning"),
        (text(JOB, "backoffLimit: 0", "/start.sh, '--lr 1'"), "ARGV002", "note"),
        (text(JOB, "backoffLimit: 0", "python, a.py, '&&', python, b.py"), "ARGV010", "warning"),
        (text(JOB, "backoffLimit: 0", "/start.sh, '&&', python, b.py"), "ARGV010", "note"),
        (text(JOB, "backoffLimit: 0", "python, t.py, --text, 'a | b'"), "ARGV010", "note"),
        (text(JOB, "backoffLimit: 0", "python, t.py, $(ADDED)"), "ARGV020", "note"),
        (text(JOB, "backoffLimit: 0", "bash, -c, 'python train.py & tensorboard'"), "ARGV044", ""),
        (text(JOB, "backoffLimit: 0", "bash, -c, 'python train.py & echo on'"), "ARGV044", "error"),
        (text(WORKFLOW, "arguments: {parameters: [{name: x, value: y}]}", "x"), "ARGO001", "warning"),
        (text(WORKFLOW, "entrypoint: m", "x"), "ARGO009", "warning"),
        (OLD, "API003", ""),
        (OLD, "API006", "warning"),
        ("$ kubectl apply -f - <<EOF\n" + OLD + "EOF\n", "YAML001", "warning"),
        ('spec = f"""' + OLD + '"""\n', "YAML001", "warning"),
        ("@component(\n    packages=['a'],\n)\n" + OLD, "YAML001", "warning"),
        (OLD + "\n: : {\n", "YAML001", "error"),
    ],
)  # fmt: skip
def test_how_sure_it_is(manifest: str, rule: str, level: str) -> None:
    found = lint([read_text(manifest.encode(), "manifest.yaml")])
    levels = {each.level.word for each in found if each.rule == rule}
    assert levels == ({level} if level else set()), [(each.rule, each.level.word, each.message) for each in found]
