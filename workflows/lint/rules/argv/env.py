"""Items of ``env`` as the API server takes them."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem, Remove, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container


@rule("ARGV030", Level.ERROR, on=Container)
def value_is_a_string(container: Container) -> Iterator[Problem]:
    """A number or a boolean as the value of a variable."""
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


@rule("ARGV032", Level.WARNING, on=Container)
def twice(container: Container) -> Iterator[Problem]:
    """The same variable in two items."""
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
                level=Level.NOTE if same else None,
            )
