"""Monitors and what they select: small manifests, both ways."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: s, namespace: %s, labels: {app: dcgm}}
spec: {selector: {app: dcgm}, ports: [{name: metrics, port: 9400}]}
---
"""
ONE_OF = "{matchExpressions: [{key: app, operator: In, values: [a, dcgm]}]}"
SLOW = "{port: metrics, interval: 30s, scrapeTimeout: 1m}"
MONITOR = """\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: m, namespace: monitoring, labels: {release: x}}
spec: {selector: %s, namespaceSelector: %s, endpoints: [%s]}
"""


def mon(text: str) -> list[tuple[str, str]]:
    return [(rule, level) for rule, level, _ in found(text, "MON")]


@pytest.mark.parametrize(
    ("namespace", "selector", "spaces", "endpoint", "expected"),
    [
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{port: metrics}", []),
        ("ml", "{matchLabels: {app: dcgm}}", "{matchNames: [ml]}", "{port: metrics}", []),
        ("null", "{matchLabels: {app: dcgm}}", "{}", "{port: metrics}", []),
        ("ml", "{matchLabels: {app: dcgm}}", "{}", "{port: metrics}", [("MON002", "warning")]),
        ("ml", "{matchLabels: {app: other}}", "{any: true}", "{port: metrics}", [("MON001", "warning")]),
        ("ml", "{matchLabels: {app: other}}", "{matchNames: [x]}", "{port: metrics}", []),
        ("monitoring", "{matchLabels: {app: other}}", "{}", "{port: metrics}", [("MON001", "warning")]),
        ("ml", "{matchLabels: {app: '{{x}}'}}", "{any: true}", "{port: metrics}", []),
        ("ml", ONE_OF, "{any: true}", "{port: metrics}", []),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{port: http}", [("MON006", "error")]),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{targetPort: 9400}", []),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{port: 9400}", [("MON005", "error")]),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{port: '9400'}", [("MON005", "error")]),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "", [("MON003", "error")]),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", SLOW, [("MON008", "error")]),
        ("ml", "{matchLabels: {app: dcgm}}", "{any: true}", "{port: metrics, interval: 500ms}", [("MON009", "note")]),
    ],
)  # fmt: skip
def test_a_monitor(namespace: str, selector: str, spaces: str, endpoint: str, expected: list[tuple[str, str]]) -> None:
    assert mon(SERVICE % namespace + MONITOR % (selector, spaces, endpoint)) == expected


def test_labels_that_an_operator_adds_may_be_selected() -> None:
    text = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch}]}}}}}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: m, labels: {release: x}}
spec: {selector: {matchLabels: {%s: train}}, podMetricsEndpoints: [{portNumber: 8000}]}
"""
    assert mon(text % "training.kubeflow.org/job-name") == []
    assert mon(text % "app") == [("MON001", "warning")]
