"""Between DCP's flat state (a path for each value) and the tree of a stored state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Path = tuple[str | int, ...]


def nested(leaves: Mapping[Path, Any]) -> Any:
    """The tree (see :mod:`argosy.steps.state.tree`) whose leaves lie at these paths; whole numbers index lists."""
    root = _Node()
    for path, leaf in leaves.items():
        node = root
        for key in path[:-1]:
            node = node.setdefault(key, _Node())
        node[path[-1]] = leaf
    return _tree(root)


class _Node(dict[Any, Any]):
    """A container; what is no _Node is a leaf."""


def _tree(node: Any) -> Any:
    if not isinstance(node, _Node):
        return node
    if node and all(type(key) is int for key in node):
        return [_tree(node[key]) for key in sorted(node)]
    if any(key.startswith("$") for key in node):
        return {"$dict": [[key, _tree(value)] for key, value in node.items()]}
    return {key: _tree(value) for key, value in node.items()}
