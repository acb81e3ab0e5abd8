"""What the thirtieth set of public manifests showed to be wrong, and its siblings, in small."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_twenty_eighth_set import POD, WORKFLOW, said


@pytest.mark.parametrize("sketch", ["[ ... ]", "( ... )", "<...>", "[…]", "- [ ... ]"])
def test_brackets_with_blanks_around_what_was_left_out(sketch: str) -> None:
    assert said(f"kind: Pod\nmetadata:\n  name: p\n  {sketch}\n  labels: {{a: b}}\n") == [("YAML001", "warning")]


@pytest.mark.parametrize("fence", ["```", " ```", "```yaml"])
def test_a_page_goes_on_behind_a_block(fence: str) -> None:
    assert said(f"{POD}{fence}\n**Start it**\n") == [("YAML001", "warning")]


def test_a_fence_elsewhere_excuses_nothing() -> None:
    assert said(POD + "      command: [a\n# ```\n") == [("YAML001", "error")]


@pytest.mark.parametrize(("kind", "expected"), [("PodGroup", [("API001", "error")]), ("MPI", [])])
def test_a_kind_of_anothers_in_a_retired_group(kind: str, expected: list[tuple[str, str]]) -> None:
    assert said(f"apiVersion: scheduling.incubator.k8s.io/v1alpha1\nkind: {kind}\nmetadata: {{name: m}}\n") == expected


SECRET = "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, namespace: n}}}]"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"{WORKFLOW}      container: {{image: 'r/x:1', command: [a], {SECRET}}}\n", "the pod's own namespace"),
        (f"{POD}      {SECRET}\n", "the pod's own namespace"),
        (f"{WORKFLOW}      container: {{image: 'r/x:1', command: [a]}}\n  outputs: {{}}\n", "spec.templates[].outputs"),
    ],
)
def test_a_field_is_sent_to_no_place_of_another_meaning(text: str, remedy: str) -> None:
    (found,) = [each for each in lint([read_text(text.encode(), "a.yaml")]) if "no field" in each.message]
    assert remedy in found.remedy


def test_one_misspelling_that_was_copied_is_one_finding() -> None:
    twice = "".join(
        f"    - name: {name}\n      container: {{image: 'r/x:1', command: [a], WorkingDir: /w}}\n" for name in "tu"
    )
    text = WORKFLOW.replace("    - name: t\n", twice)
    (found,) = [each for each in lint([read_text(text.encode(), "a.yaml")]) if each.rule == "API002"]
    assert found.message.endswith("(also on line 10)")
    assert len(found.edits) == 2
