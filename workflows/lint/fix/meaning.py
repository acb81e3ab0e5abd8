"""What edits mean for the data of a file: the yardstick against which the edited text is held."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from argosy.workflows.lint.finding import AddKey, Edit, Remove, RenameKey, SetValue
from argosy.workflows.lint.fix.text import CannotEdit
from argosy.workflows.manifests.composing import LOADER
from argosy.workflows.manifests.node import Node

Path = tuple[str | int, ...]


def paths(roots: Iterable[Node]) -> dict[int, list[Path]]:
    """Where each composed value stands, (document, key, index, …); several places for one that has aliases."""
    found: dict[int, list[Path]] = {}
    for index, root in enumerate(roots):
        if root.yaml is not None:
            _collect(root.yaml, (index,), found)
    return found


def _collect(value: yaml.Node, path: Path, found: dict[int, list[Path]]) -> None:
    found.setdefault(id(value), []).append(path)
    if isinstance(value, yaml.MappingNode):
        for key, below in value.value:
            _collect(below, (*path, str(key.value)), found)
    elif isinstance(value, yaml.SequenceNode):
        for index, below in enumerate(value.value):
            _collect(below, (*path, index), found)


def load(text: str) -> list[Any]:
    """The plain data of a file's documents.

    Raises:
        CannotEdit: it is not YAML.
    """
    try:
        return list(yaml.load_all(text, Loader=LOADER))
    except (yaml.YAMLError, ValueError) as error:
        raise CannotEdit("the edited text would not be YAML") from error


def meant(documents: list[Any], edits: Sequence[Edit], places: dict[int, list[Path]]) -> list[Any]:
    """The data after the edits.

    Raises:
        CannotEdit: an edit is of a value that stands in no place or in several.
    """
    removed: list[Path] = []
    for edit in sorted(edits, key=lambda each: isinstance(each, RenameKey)):  # paths hold the keys of before
        path = _place(edit.node, places)
        if isinstance(edit, Remove):
            removed.append(path)
            continue
        holder = _at(documents, path[:-1])
        if isinstance(edit, SetValue):
            holder[path[-1]] = edit.value
        elif isinstance(edit, AddKey):
            holder[path[-1]] = {**holder[path[-1]], edit.key: edit.value}
        elif isinstance(edit, RenameKey):
            if edit.key in holder:
                raise CannotEdit("the new key stands there already")
            items = [(edit.key if key == path[-1] else key, value) for key, value in holder.items()]
            holder.clear()
            holder.update(items)
    for path in sorted(set(removed), key=_late_first, reverse=True):
        _remove(documents, path)
    return documents


def _late_first(path: Path) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (0, part) for part in path]


def _place(node: Node, places: dict[int, list[Path]]) -> Path:
    found = places.get(id(node.yaml), [])
    if len(found) != 1:
        raise CannotEdit("the value stands in no place of its own")
    return found[0]


def _at(documents: list[Any], path: Path) -> Any:
    value: Any = documents
    for part in path:
        value = value[part]
    return value


def _remove(documents: list[Any], path: Path) -> None:
    """An emptied list or mapping goes with its key, as the text's does."""
    while len(path) > 1:
        holder = _at(documents, path[:-1])
        del holder[path[-1]]
        if holder:
            return
        path = path[:-1]


def comments(text: str) -> Counter[str]:
    """Lines' comments; what looks like one inside a block of text is counted too, and stays as it is as well."""
    return Counter(found.rstrip() for found in re.findall(r"(?:^|(?<=\s))#.*", text, re.MULTILINE))
