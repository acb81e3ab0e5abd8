"""What the eleventh set of public manifests showed to be wrong or noise, in small."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve{name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: serve}}}}
  template:
    metadata: {{labels: {{app: serve}}}}
    spec:
      containers:
        - name: serve
          image: r/x:1
          command: [serve]
{more}
"""
RETRIED = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: a-}
spec:
  entrypoint: a
  templates:
    - name: a
      steps: [[{name: b, template: b}], [{name: c, template: c}]]
    - {name: b, retryStrategy: {limit: 2, retryPolicy: OnFailure}, container: {image: r/x:1, command: [b]}}
    - {name: c, retryStrategy: {limit: 2, retryPolicy: OnFailure}, container: {image: r/x:1, command: [c]}}
"""


def deployment(more: str = "", name: str = "", replicas: str = "1") -> str:
    return DEPLOYMENT.format(more=more, name=name, replicas=replicas)


@pytest.mark.parametrize(
    "line",
    [
        "          env:HF_TOKEN_ENV\n            - {name: A, value: b}",
        "          env:<ENV>\n            - {name: A, value: b}",
        "INIT_SCRIPT\n          tty: true",
        "__INIT__\n          tty: true",
        "$INIT\n          tty: true",
    ],
)
def test_a_word_that_a_script_fills_in_makes_a_template(line: str) -> None:
    assert [each[:2] for each in found(deployment(line), "YAML")] == [("YAML001", "warning")]


def test_a_word_in_capitals_elsewhere_excuses_no_broken_line() -> None:
    text = deployment("          env:\n            - name: A\n              value: HF_TOKEN\n        tty true")
    assert [each[:2] for each in found(text, "YAML")] == [("YAML001", "error")]


def test_what_a_template_leaves_open_is_not_told_of_at_the_default_level() -> None:
    text = "---\n".join(
        [deployment(name="-MODEL_TAG", replicas="REPLICAS_COUNT"), deployment("          env:HF_ENV\n - a")]
    )
    assert {each[:2] for each in found(text, "API")} == {("API004", "note"), ("API008", "note")}
    assert [each[:2] for each in found(text, "YAML")] == [("YAML001", "warning")]


@pytest.mark.parametrize(
    ("first", "last", "level"),
    [
        ("{a: b}", "{a: b}", "note"),
        ("{a: b}", "{c: d, a: b}", "note"),
        ("{a: {b: [c, d]}}", "{a: {b: [c, d]}}", "note"),
        ("{a: b, c: d}", "{a: b}", "warning"),
        ("{a: b}", "{a: c}", "warning"),
        ("{a: [{b: c}]}", "{a: [{b: d}]}", "warning"),
        ("{a: '1'}", "{a: 1}", "warning"),
        ("[{a: b}]", "{a: b}", "warning"),
    ],
)
def test_a_key_that_stands_twice_is_a_warning_where_something_is_lost(first: str, last: str, level: str) -> None:
    text = f"apiVersion: v1\nkind: Other\nspec:\n  nodeSelector: {first}\n  nodeSelector: {last}\n"
    assert found(text, "YAML") == [("YAML002", level, 5)]


def test_one_cause_in_several_templates_is_one_finding() -> None:
    assert found(RETRIED, "ARGO") == [("ARGO017", "warning", 9)]
