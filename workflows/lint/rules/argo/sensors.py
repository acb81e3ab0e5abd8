"""From an event to a workflow: EventSources and Sensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node


def _triggers(document: Document) -> list[Node]:
    return document.spec["triggers"].items if document.is_a("Sensor", "argoproj.io") else []


def _parameters(trigger: Node) -> Iterator[tuple[Node, Node]]:
    """(body, parameter) of everything that an event fills in."""
    template = trigger["template"]
    for key, body in template.entries.items():
        if key not in ("name", "conditions", "conditionsReset"):
            for each in body["parameters"]:
                yield body, each
    for each in trigger["parameters"]:
        yield template, each


@rule("ARGO043", Level.ERROR, on=Document)
def of_the_sensor(document: Document) -> Iterator[Problem]:
    """Triggers take values from what the sensor has, and set them where there is a place."""
    yield from _nowhere(document)
    yield from _unknown_dependency(document)


def _nowhere(document: Document) -> Iterator[Problem]:
    """An event's value goes to a place that is there."""
    for trigger in _triggers(document):
        for body, parameter in _parameters(trigger):
            destination = parameter["dest"]
            path = re.fullmatch(r"spec\.arguments\.parameters\.(\d+)\.value", destination.text)
            made = body.at("source.resource")
            if path is None or not made.is_mapping:
                continue
            named = {each["dest"].text for each in body["parameters"]}
            if f"spec.arguments.parameters.{path[1]}.name" in named:
                continue  # the whole argument comes from the event
            count = len(made.at("spec.arguments.parameters").items)
            if int(path[1]) >= count:
                yield Problem(
                    destination,
                    f"{destination.text}: the workflow has {count} arguments, counted from 0, so this one is not there",
                    "add the argument with a value that is replaced, or correct the number",
                )


def _unknown_dependency(document: Document) -> Iterator[Problem]:
    """Triggers and conditions name dependencies of the sensor."""
    names = {each["name"].text for each in document.spec["dependencies"]}
    for each in document.spec["dependencies"] if document.is_a("Sensor", "argoproj.io") else ():
        for key in ("eventSourceName", "eventName"):
            if each.is_mapping and not each[key]:
                old = ": gateways went with Argo Events 1.0" if each["gatewayName"] else ""
                what = f"the dependency {each['name'].text!r} has no {key}, which the sensor's controller refuses{old}"
                yield Problem(each, what, f"write {key}")
    for trigger in _triggers(document):
        for _, parameter in _parameters(trigger):
            node = parameter.at("src.dependencyName")
            if node.text and not node.open and node.text not in names:
                yield Problem(
                    node, f"the sensor has no dependency {node.text!r}", f"name one of: {', '.join(sorted(names))}"
                )
        conditions = trigger.at("template.conditions")
        for word in re.findall(r"[A-Za-z0-9][\w-]*", conditions.text):
            if word not in names and not conditions.open:
                yield Problem(
                    conditions,
                    f"conditions name {word!r}, which is no dependency of the sensor",
                    f"name one of: {', '.join(sorted(names))}",
                )


@rule("ARGO044", Level.WARNING, on=Document)
def unknown_event(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A dependency names an event of an EventSource."""
    if not document.is_a("Sensor", "argoproj.io"):
        return
    for each in document.spec["dependencies"]:
        source, event = each["eventSourceName"], each["eventName"]
        found = bundle.find("EventSource", source.text, document) if source.text and not source.open else None
        if found is None:
            yield from _not_given(source, document, bundle)
            continue
        events = {name for node in found.spec.entries.values() if node.is_mapping for name in node.entries}
        if event.text and not event.open and event.text not in events:
            yield Problem(
                event,
                f"the EventSource {source.text!r} has no event {event.text!r}: the sensor waits for ever",
                f"name one of: {', '.join(sorted(events - {'serviceAccountName', 'ports', 'metadata', 'container'}))}",
                level=Level.ERROR,
            )


def _not_given(source: Node, document: Document, bundle: Bundle) -> Iterator[Problem]:
    others = sorted({each.name for each in bundle.near("EventSource", document) if each.name})
    if source.text and not source.open and others:
        yield Problem(
            source,
            f"the EventSource {source.text!r} is not among the files given, which hold {', '.join(others)}",
            "correct the name, or make it before the sensor",
        )


@rule("ARGO045", Level.ERROR, on=Document)
def minio_with_aws(document: Document) -> Iterator[Problem]:
    """The minio source listens by a call that only MinIO answers."""
    for event in document.spec["minio"].entries.values() if document.is_a("EventSource", "argoproj.io") else ():
        endpoint = event["endpoint"]
        if "amazonaws.com" in endpoint.text or "storage.googleapis.com" in endpoint.text:
            yield Problem(
                endpoint,
                f"a minio source at {endpoint.text}: listening for events is a call of MinIO's own, which S3 refuses",
                "send the bucket's notifications to SQS or SNS, and use that source",
            )
