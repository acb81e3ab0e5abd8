"""Items of ``env`` as the API server takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem, Remove, SetValue
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container

_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid)|metadata\.(labels|annotations)\['[^']+'\]|spec\.(nodeName|serviceAccountName)"
    r"|status\.(hostIP|hostIPs|podIP|podIPs)"
)


@rule("ARGV030", Level.ERROR, on=Container)
def value_is_a_string(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A number or a boolean as the value of a variable."""
    del bundle
    for item in container.node["env"]:
        value = item["value"]
        if value.is_scalar and not value.is_kubernetes_string:
            yield Problem(
                value,
                f"{value.text} without quotes is no string, and env takes strings: the API server refuses the object",
                f'write "{value.text}"',
                edits=[SetValue(value, value.text)],
            )
        elif value.is_mapping or value.is_list:
            yield Problem(
                value,
                f"the value of {item['name'].text or 'a variable'} is a {'mapping' if value.is_mapping else 'list'}: "
                "the API server refuses the object",
                "write it as a text in quotes",
            )


@rule("ARGV031", Level.ERROR, on=Container)
def value_and_source(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``value`` and ``valueFrom`` in one item."""
    del bundle
    for item in container.node["env"]:
        if item["value"].text and item["valueFrom"]:
            yield Problem(
                item["valueFrom"],
                f"{item['name'].text or 'a variable'} has a value and a valueFrom: the API server refuses the object",
                "keep one of them",
            )


@rule("ARGV032", Level.WARNING, on=Container)
def twice(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """The same variable in two items."""
    del bundle
    last: dict[str, Node] = {}
    items = container.node["env"].items
    for item in items:
        last[item["name"].text] = item
    for item in items:
        name = item["name"].text
        winner = last[name]
        if name and not item["name"].open and winner is not item:
            same = item.data == winner.data
            yield Problem(
                item,
                f"{name} is set again on line {winner.line}, and the last one wins"
                + ("" if same else ": this value is never seen"),
                "keep one",
                edits=[Remove(item)] if same else (),
            )


@rule("ARGV033", Level.ERROR, on=Container)
def field_path(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A field of the pod that variables cannot take."""
    del bundle
    for item in container.node["env"]:
        path = item.at("valueFrom.fieldRef.fieldPath")
        if path.text and not path.open and _FIELD.fullmatch(path.text) is None:
            yield Problem(
                path,
                f"{path.text} is no field that a variable can take: the API server refuses the object",
                "write metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], "
                "metadata.annotations['KEY'], spec.nodeName, spec.serviceAccountName, status.podIP or status.hostIP",
            )
