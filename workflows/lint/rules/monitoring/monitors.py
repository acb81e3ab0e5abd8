"""What a monitor selects."""

from __future__ import annotations

import os
from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.monitor import Monitor, monitor
from argosy.workflows.lint.view.selector import matches


@rule("MON001", Level.WARNING, on=Document)
def nothing(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A selector that selects no Service, or no pod, of the files."""
    found = monitor(document)
    if found is None or not found.selector:
        return
    if found.services(bundle) if found.of_services else found.pods(bundle):
        return
    folder = os.path.dirname(document.file)
    held = bundle.of_kind("Service") if found.of_services else [pod.document for _, pod in bundle.pods]
    others = any(os.path.dirname(each.file) == folder and found.in_namespace(each.namespace) for each in held)
    what = "Service" if found.of_services else "pod"
    if not others or _elsewhere(found, bundle):
        return
    yield Problem(
        found.selector,
        f"the {document.kind} selects no {what} among the files given ({_labels(found, bundle)})",
        f"write the labels of the {what} itself; a Service's own labels count, and not its selector's"
        if found.of_services
        else "write the labels of the pod template",
    )


def _elsewhere(found: Monitor, bundle: Bundle) -> bool:
    """Whether something of these labels is there, in a namespace that is not looked into (MON002)."""
    return any(matches(found.selector, each.labels) for each in bundle.of_kind("Service")) and found.of_services


def _labels(found: Monitor, bundle: Bundle) -> str:
    if found.of_services:
        held = [(each.name, each.labels) for each in bundle.of_kind("Service")]
    else:
        held = [(pod.document.name, pod.labels) for _, pod in bundle.pods]
    name, labels = held[0]
    shown = ", ".join(f"{key}: {value.text}" for key, value in labels.entries.items())
    return f"{name!r} has " + (f"labels {shown}" if shown else "no labels")


@rule("MON002", Level.WARNING, on=Document)
def other_namespace(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Without namespaceSelector a monitor looks into its own namespace."""
    found = monitor(document)
    if found is None or not found.of_services or found.services(bundle) or not found.selector:
        return
    for each in bundle.of_kind("Service"):
        if each.group == "" and each.namespace and matches(found.selector, each.labels):
            yield Problem(
                document.spec["namespaceSelector"],
                f"the Service {each.name!r} is in the namespace {each.namespace!r}, into which this monitor does not "
                "look",
                f"add namespaceSelector: {{matchNames: [{each.namespace}]}}",
            )
            return


@rule("MON003", Level.ERROR, on=Document)
def no_endpoints(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A monitor without endpoints or selector reads nothing."""
    del bundle
    found = monitor(document)
    if found is None or document.spec.open:
        return
    field = "endpoints" if found.of_services else "podMetricsEndpoints"
    if not found.endpoints:
        other = "podMetricsEndpoints" if found.of_services else "endpoints"
        swapped = document.spec[other].exists
        yield Problem(
            document.spec[other] if swapped else document.spec[field],
            f"a {document.kind} without {field}" + (f": {other} is the other kind's" if swapped else ""),
            f"write {field}: [{{port: metrics}}]",
        )
    if not found.selector.exists:
        yield Problem(
            found.selector,
            f"a {document.kind} without a selector, which the API refuses",
            "set selector.matchLabels",
        )


@rule("MON004", Level.NOTE, on=Document)
def not_chosen(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Prometheus itself selects the monitors that it reads, mostly by a label."""
    if document.group != "monitoring.coreos.com" or document.kind not in (
        "ServiceMonitor",
        "PodMonitor",
        "PrometheusRule",
    ):
        return
    if not document.labels.entries and not bundle.of_kind("Prometheus"):
        yield Problem(
            document.metadata["name"] or document.root,
            f"a {document.kind} without labels: Prometheus takes those that its own selector names, by default of "
            "kube-prometheus-stack those with release: NAME",
            "add the label that your Prometheus selects (kubectl get prometheus -o yaml shows it)",
        )
