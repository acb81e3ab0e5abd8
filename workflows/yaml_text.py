"""YAML as a person reads it: names first, texts as blocks, the same bytes for the same document.

Hera's own ``to_yaml`` goes through PyYAML's pure Python emitter; this one uses libyaml's where it is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_FIRST = (
    *("apiVersion", "kind", "generateName", "name", "template", "depends", "when", "metadata", "spec"),
    *("entrypoint", "onExit", "arguments", "workflowMetadata", "inputs", "outputs", "path", "dag"),
    *("container", "image", "command", "args", "env", "envFrom", "resources", "requests", "limits"),
    *("parameters", "artifacts", "retryStrategy", "limit", "retryPolicy", "expression", "backoff"),
)
_WIDEST = 100
_QUOTED_INSIDE = re.compile(r"[\[\]{},:?#'\"]")
"""What makes YAML's writer quote a text inside brackets; only a guess at the width depends on it."""
_RANK = {key: rank for rank, key in enumerate(_FIRST)}
_LAST = len(_FIRST)
# Go's reader takes these for a boolean or a number where PyYAML's resolver sees text and leaves the quotes out.
_MISREAD = re.compile(r"[yYnN]|[-+]?0[oObBxX][0-9A-Fa-f_]+|[-+]?[0-9_]*\.?[0-9_]+([eE][-+]?[0-9]+)?|[-+]?[0-9_]+\.")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Never aliases: a reader should find each value where it counts."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def serialize(self, node: Any) -> None:
        node.flow_style = False  # never the whole document
        super().serialize(node)

    def represent_mapping(self, *args: Any, **kwargs: Any) -> Any:
        return _on_one_line(super().represent_mapping(*args, **kwargs))

    def represent_sequence(self, *args: Any, **kwargs: Any) -> Any:
        return _on_one_line(super().represent_sequence(*args, **kwargs))


def _on_one_line(node: Any) -> Any:
    """A small list or map stands on one line, as people write it: ``{drop: [ALL]}``; a list of maps has one on each."""
    tables = isinstance(node, yaml.SequenceNode) and any(isinstance(each, yaml.MappingNode) for each in node.value)
    node.flow_style = True
    node.flow_style = not tables and _width(node) <= _WIDEST
    return node


def _width(node: Any) -> int:
    """Characters that it takes on one line; more than fit, where something in it stands on lines of its own."""
    if isinstance(node, yaml.ScalarNode):
        quoted = node.style or not node.value or _QUOTED_INSIDE.search(node.value)
        return _WIDEST + 1 if node.style == "|" else len(node.value) + (2 if quoted else 0)
    if not node.flow_style:
        return _WIDEST + 1
    pairs = isinstance(node, yaml.MappingNode)
    return sum(_width(each) + 2 for item in node.value for each in (item if pairs else [item])) or 2


def _text(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text:
        style = "|" if _fits_block(text) else '"'
    elif _MISREAD.fullmatch(text) or not text.isprintable():
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _fits_block(text: str) -> bool:
    """Whether a literal block gives the text back unchanged in every YAML reader."""
    lines = text.split("\n")
    return all(line.isascii() and line.isprintable() and line == line.rstrip() for line in lines) and lines[0][
        :1
    ] not in ("", " ")


_Dumper.add_representer(str, _text)


def to_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, ASCII only, ending in a newline."""
    text: str = yaml.dump(
        _ordered(document),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        width=1_000_000,
        allow_unicode=False,
    )
    return text


def _rank(key: str, value: Any) -> int:
    # A task's template is a name; a Job's template is a long table and comes after the numbers.
    return _LAST if key == "template" and isinstance(value, Mapping) else _RANK.get(key, _LAST)


def _ordered(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _ordered(node[key]) for key in sorted(node, key=lambda key: _rank(key, node[key]))}
    if isinstance(node, list):
        return [_ordered(each) for each in node]
    return node
