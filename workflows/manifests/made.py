"""Mappings that no file holds, made of values that do: every value keeps the place where it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import yaml

from argosy.workflows.manifests.node import Node

_MAP = "tag:yaml.org,2002:map"
_SEQ = "tag:yaml.org,2002:seq"
_STR = "tag:yaml.org,2002:str"


def made_mapping(place: Node, values: Mapping[str, Node]) -> Node:
    """A mapping of the values that are there; it stands where ``place`` stands."""
    start, end = _marks(place)
    pairs = [
        (yaml.ScalarNode(_STR, key, value.yaml.start_mark, value.yaml.start_mark), value.yaml)
        for key, value in values.items()
        if value.yaml is not None
    ]
    return Node(yaml.MappingNode(_MAP, pairs, start, end), place.origin, place.parent, place.key)


def made_list(place: Node, values: Iterable[Node]) -> Node:
    """A list of the values that are there; it stands where ``place`` stands."""
    start, end = _marks(place)
    held = [value.yaml for value in values if value.yaml is not None]
    return Node(yaml.SequenceNode(_SEQ, held, start, end), place.origin, place.parent, place.key)


def made_text(place: Node, text: str) -> Node:
    """A string; it stands where ``place`` stands."""
    start, _ = _marks(place)
    return Node(yaml.ScalarNode(_STR, text, start, start), place.origin, place.parent, place.key)


def _marks(place: Node) -> tuple[yaml.Mark, yaml.Mark]:
    node = place
    while node.yaml is None and node.parent is not None:
        node = node.parent
    if node.yaml is None:
        mark = yaml.Mark(place.origin.file, 0, 0, 0, None, 0)
        return mark, mark
    return node.yaml.start_mark, node.yaml.end_mark
