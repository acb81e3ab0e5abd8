"""Sensors: which arguments of which workflows an event fills in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node

Filled = dict[int | str, set[str]]
"""Names of arguments, by the id of the workflow's own value and by the name of the WorkflowTemplate that it runs."""


def filled_arguments(sensors: Iterable[Document]) -> Filled:
    """What the Sensors' triggers put into the workflows that they make."""
    found: Filled = defaultdict(set)
    for sensor in sensors:
        for trigger in sensor.spec["triggers"]:
            for kind in ("k8s", "argoWorkflow"):
                body = trigger["template"][kind]
                made = body.at("source.resource")
                names = _filled(body, made)
                found[id(made.yaml)] |= names
                if made.at("spec.workflowTemplateRef.name").text:
                    found[made.at("spec.workflowTemplateRef.name").text] |= names
    return found


def _filled(body: Node, made: Node) -> set[str]:
    arguments = made.at("spec.arguments.parameters").items
    names = set()
    for each in body["parameters"]:
        path = re.fullmatch(r"spec\.arguments\.parameters\.(\d{1,4})\.value", each["dest"].text)
        if path is not None and int(path[1]) < len(arguments):
            names.add(arguments[int(path[1])]["name"].text)
    return names
