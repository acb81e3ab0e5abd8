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
_RANK = {key: rank for rank, key in enumerate(_FIRST)}
_LAST = len(_FIRST)
# Go's reader takes these for a boolean or a number where PyYAML's resolver sees text and leaves the quotes out.
_MISREAD = re.compile(r"[yYnN]|[-+]?0[oObBxX][0-9A-Fa-f_]+|[-+]?[0-9_]*\.?[0-9_]+([eE][-+]?[0-9]+)?|[-+]?[0-9_]+\.")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Never aliases: a reader should find each value where it counts."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


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
