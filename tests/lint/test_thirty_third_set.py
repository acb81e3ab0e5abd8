"""What the thirty-third set showed to be wrong, its siblings, and what it showed to be missed, in small."""

from __future__ import annotations

import pytest

from tests.lint.test_thirty_second_set import NAME, SENSOR, TAG
from tests.lint.test_twenty_eighth_set import POD, WORKFLOW, said

BAD = "{name: A_b, image: 'r/x:1', command: [a]"


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (f"      container: {BAD}}}\n", False),
        (f"      script: {BAD}, source: a}}\n", False),
        (f"      containerSet: {{containers: [{BAD}}}]}}\n", True),
        (f"      container: {{image: 'r/x:1', command: [a]}}\n      sidecars: [{BAD}}}]\n", True),
        (f"      container: {{image: 'r/x:1', command: [a]}}\n      initContainers: [{BAD}}}]\n", True),
    ],
)
def test_what_a_template_calls_its_own_container_is_not_read(body: str, refused: bool) -> None:
    assert (("API010", "error") in said(WORKFLOW + body)) is refused


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", [("API005", "warning")]), (" #@ data.values.directory", []), (" # @ home", [("API005", "warning")])],
)
def test_what_ytt_writes_is_not_missing(path: str, expected: list[tuple[str, str]]) -> None:
    assert said(f"{POD}  volumes:\n    - name: v\n      hostPath:\n        path:{path}\n") == expected


@pytest.mark.parametrize("resource", ["alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpus"])
def test_no_node_offers_what_went_with_the_accelerators(resource: str) -> None:
    assert said(f"{POD}      resources: {{limits: {{{resource}: 1}}}}\n") == [("API011", "warning")]


@pytest.mark.parametrize(
    ("dependency", "found"),
    [
        ("{name: d, eventSourceName: e, eventName: n}", False),
        ("{name: d, gatewayName: e, eventName: n}", True),
        ("{name: d, eventSourceName: e}", True),
    ],
)
def test_a_dependency_without_an_event(dependency: str, found: bool) -> None:
    parameters = ", ".join(f"{{src: {{dependencyName: d}}, {each}}}" for each in (TAG, NAME))
    sensor = (SENSOR % parameters).replace("{name: d, eventSourceName: e, eventName: n}", dependency)
    assert said(sensor) == [("ARGO043", "error")] * found
