"""What the thirty-sixth set of public manifests showed to be false, and what the record called noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import pod
from tests.lint.test_twenty_eighth_set import said

MOUNT = "volumeMounts: [{name: store, mountPath: /x}]"
SERVICE = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "%s"}, "spec": {"ports": [{"port": 80}]}}\n'


@pytest.mark.parametrize(
    ("comment", "level"),
    [
        ("", "error"),
        ("# Set up your storage here\n# volumes:\n#   - name: store\n", "warning"),
        ("# volumes:\n#   - name: stores\n", "error"),
        ("# the mount of store\n", "error"),
    ],
)
def test_a_volume_that_stands_in_a_comment_is_left_to_write(comment: str, level: str) -> None:
    assert [each for each in said(comment + pod(MOUNT)) if each[0] == "STORE001"] == [("STORE001", level)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SERVICE % "a" + SERVICE % "b", []),  # as kubectl takes it
        (SERVICE % "a" + SERVICE % "B", [("API008", "warning")]),
        (SERVICE % "a" + "a: [", [("YAML001", "error")]),
        (SERVICE % "a" + SERVICE.replace("}\n", "\n") % "b", [("YAML001", "error")]),
    ],
)
def test_objects_of_json_on_a_line_each(text: str, expected: list[tuple[str, str]]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(("value", "expected"), [("Simple", []), ("LL128", [("NCCL041", "warning")]), ("^LL128", [])])
def test_vendors_pages_ask_for_a_protocol(value: str, expected: list[tuple[str, str]]) -> None:
    text = pod(f"command: [torchrun, train.py]\nenv: [{{name: NCCL_PROTO, value: {value}}}]")
    assert [each for each in said(text) if each[0] == "NCCL041"] == expected


@pytest.mark.parametrize(
    ("operation", "told"), [("create", True), ("submit", True), ("submit-from", False), ("stop", False)]
)
def test_a_trigger_that_makes_nothing_names_what_is_there(operation: str, told: bool) -> None:
    resource = "resource: {apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, metadata: {name: c}}"
    trigger = f"template: {{name: t, argoWorkflow: {{operation: {operation}, source: {{{resource}}}}}}}"
    spec = f"dependencies: [{{name: d, eventSourceName: e, eventName: f}}]\n  triggers:\n  - {trigger}"
    text = f"apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nmetadata: {{name: s}}\nspec:\n  {spec}\n"
    assert (("API005", "warning") in said(text)) == told


@pytest.mark.parametrize(("name", "told"), [("pod.yaml", True), ("driver-pod-template.yaml", False)])
def test_spark_completes_a_pod_template(name: str, told: bool) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: driver}\nspec: {nodeSelector: {a: b}}\n"
    assert said(text, name) == [("API005", "warning")] * told


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("torchrun a.py || echo failed", True),
        ("torchrun a.py || echo failed\n  torchrun b.py || echo failed", False),
        ("pip install x || true\n  torchrun b.py || echo failed", True),
    ],
)
def test_of_several_parts_each_may_fail(script: str, told: bool) -> None:
    text = pod(f"command: [bash, -c, {script!r}]".replace("\\n  ", "; ").replace("'", '"'))
    assert (("ARGV041", "warning") in said(text)) == told


@pytest.mark.parametrize(("program", "told"), [("convert", False), ("show", True)])
def test_imagemagick_expands_its_own_patterns(program: str, told: bool) -> None:
    assert (("ARGV010", "warning") in said(pod(f'command: [{program}, "/data/*.gif", a.gif]'))) == told
