"""Sensors: what an event fills in of the objects that it makes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node

Filled = dict[int | str, set[str]]
"""Names of arguments, by the id of the workflow's own value and by the name of the WorkflowTemplate that it runs."""


def filled_arguments(sensors: Iterable[Document]) -> Filled:
    """What the Sensors' triggers put into the workflows that they make."""
    found: Filled = defaultdict(set)
    for body, made in _made(sensors):
        names = _filled(body, made)
        found[id(made.yaml)] |= names
        if made.at("spec.workflowTemplateRef.name").text:
            found[made.at("spec.workflowTemplateRef.name").text] |= names
    return found


def written_over(sensors: Sequence[Document]) -> set[int]:
    """Ids of the values, of triggers and of the objects that they make, which a parameter replaces, or appends to."""
    found = [_below(made, each["dest"].text) for body, made in _made(sensors) for each in body["parameters"]]
    triggers = [trigger for sensor in sensors for trigger in sensor.spec["triggers"]]
    found += [_below(each["template"], own["dest"].text) for each in triggers for own in each["parameters"]]
    return {id(node.yaml) for node in found if node.yaml is not None}


def _made(sensors: Iterable[Document]) -> Iterator[tuple[Node, Node]]:
    """(body, object) of each trigger."""
    for sensor in sensors:
        for trigger in sensor.spec["triggers"]:
            for kind in ("k8s", "argoWorkflow"):
                body = trigger["template"][kind]
                yield body, body.at("source.resource")


def _below(made: Node, path: str) -> Node:
    node = made
    for part in path.split("."):
        place = int(part) if re.fullmatch(r"[0-9]{1,4}", part) else len(node.items)
        node = node.items[place] if place < len(node.items) else node[part]
    return node


def _filled(body: Node, made: Node) -> set[str]:
    arguments = made.at("spec.arguments.parameters").items
    names = set()
    for each in body["parameters"]:
        path = re.fullmatch(r"spec\.arguments\.parameters\.(\d{1,4})\.value", each["dest"].text)
        if path is not None and int(path[1]) < len(arguments):
            names.add(arguments[int(path[1])]["name"].text)
    return names
