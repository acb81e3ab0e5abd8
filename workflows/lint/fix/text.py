"""A file's text with the places of its values, and the changes of characters that an edit comes to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import yaml

from argosy.workflows.lint.finding import AddKey, Edit, Remove, RenameKey, SetValue
from argosy.workflows.manifests.node import Node, needs_quotes

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)


class CannotEdit(Exception):
    """The text is written in a way in which this edit is not safe."""


@dataclass(frozen=True, slots=True)
class Change:
    """Characters ``start`` to ``end`` become ``new``."""

    start: int
    end: int
    new: str


class Text:
    """A file's text; positions are numbers of characters from its start."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0]
        for found in re.finditer("\n", text):
            self._lines.append(found.end())

    def change(self, edit: Edit) -> Change:
        """What an edit comes to.

        Raises:
            CannotEdit: the value's place is not its own (an alias's, a made one), or the edit is not known to be safe.
        """
        if edit.node.yaml is None or not edit.node.origin.editable:
            raise CannotEdit("the value has no place of its own in the file")
        match edit:
            case Remove(node):
                return self._remove(node)
            case SetValue(node, value):
                return self._set(node, value)
            case RenameKey(node, key):
                return self._rename(node, key)
            case AddKey(node, key, value):
                return self._add(node, key, value)

    # ---- the four edits

    def _remove(self, node: Node) -> Change:
        siblings = self._siblings(node)
        if len(siblings) == 1:
            if node.parent is None or node.parent.parent is None:
                raise CannotEdit("nothing would be left")
            return self._remove(node.parent)
        index = next(number for number, (value, _) in enumerate(siblings) if value is node.yaml)
        start, end = siblings[index][1], self._end(node.yaml)
        if self._is_flow(node.parent):
            if index + 1 < len(siblings):
                return Change(start, siblings[index + 1][1], "")
            return Change(self._end(siblings[index - 1][0]), end, "")
        if index + 1 < len(siblings) and not self._alone(start):
            return Change(
                start, siblings[index + 1][1], self._comments(start, siblings[index + 1][1], node.yaml, start)
            )
        if not self._alone(start):
            raise CannotEdit("the value shares its line")
        first, last = self._line_start(start), self._line_end(end)
        return Change(first, last, self._comments(start, last, node.yaml, start))

    def _set(self, node: Node, value: Any) -> Change:
        assert node.yaml is not None
        start, end = self._offset(node.yaml.start_mark), self._end(node.yaml)
        if isinstance(node.yaml, yaml.ScalarNode) and getattr(node.yaml, "style", None) in ("|", ">"):
            raise CannotEdit("a block of text")
        if isinstance(node.yaml, yaml.CollectionNode) and not node.yaml.flow_style:
            if node.key_yaml is None:
                raise CannotEdit("a block of values without a key")
            colon = self.text.index(":", self._offset(node.key_yaml.end_mark))
            return Change(colon + 1, end, f" {_inline(value, None)}")
        new = _inline(value, getattr(node.yaml, "style", None), flow=self._is_flow(node.parent))
        return Change(start, end, f" {new}" if start == end and self.text[start - 1 : start] == ":" else new)

    def _rename(self, node: Node, key: str) -> Change:
        place = node.key_yaml
        if not isinstance(place, yaml.ScalarNode):
            raise CannotEdit("it has no key")
        return Change(self._offset(place.start_mark), self._offset(place.end_mark), _inline(key, place.style))

    def _add(self, node: Node, key: str, value: Any) -> Change:
        if not isinstance(node.yaml, yaml.MappingNode):
            raise CannotEdit("not a mapping")
        if node.yaml.flow_style:
            end = self._offset(node.yaml.end_mark) - 1
            last = self._end(node.yaml.value[-1][1]) if node.yaml.value else end
            entry = f"{_inline(key, None)}: {_inline(value, None, flow=True)}"
            return Change(last, last, f", {entry}" if node.yaml.value else entry)
        column = int(node.yaml.value[0][0].start_mark.column)
        at = self._line_end(self._end(node.yaml.value[-1][1]))
        before = "" if at == 0 or self.text[at - 1] == "\n" else "\n"
        text = yaml.safe_dump({key: value}, sort_keys=False, default_flow_style=False)
        return Change(at, at, before + "".join(" " * column + line + "\n" for line in text.rstrip("\n").split("\n")))

    # ---- places

    def _offset(self, mark: yaml.Mark) -> int:
        return self._lines[mark.line] + int(mark.column)

    def _siblings(self, node: Node) -> list[tuple[yaml.Node, int]]:
        """(value, where it begins: its key, its dash, itself) of a collection's values, in the order of the text."""
        parent = node.parent.yaml if node.parent is not None else None
        if isinstance(parent, yaml.MappingNode):
            return [(value, self._offset(key.start_mark)) for key, value in parent.value]
        if isinstance(parent, yaml.SequenceNode):
            return [(value, self._item_start(value, flow=bool(parent.flow_style))) for value in parent.value]
        raise CannotEdit("a whole document")

    def _item_start(self, value: yaml.Node, *, flow: bool) -> int:
        start = self._offset(value.start_mark)
        if flow:
            return start
        found = re.search(r"-\s+\Z", self.text[max(0, start - 200) : start])
        if found is None:
            raise CannotEdit("the item has no dash before it")
        return start - (found.end() - found.start())

    def _is_flow(self, node: Node | None) -> bool:
        return node is not None and isinstance(node.yaml, yaml.CollectionNode) and bool(node.yaml.flow_style)

    def _end(self, value: yaml.Node | None) -> int:
        """Behind the last character of a value: a block's own mark stands behind the comments that follow it."""
        assert value is not None
        if isinstance(value, yaml.ScalarNode) or (isinstance(value, yaml.CollectionNode) and value.flow_style):
            end = self._offset(value.end_mark) if value.end_mark.line < len(self._lines) else len(self.text)
            held = self.text[:end]
            return len(held.rstrip()) if getattr(value, "style", None) in ("|", ">") else end
        below = value.value[-1] if value.value else None
        if below is None:
            return self._offset(value.end_mark)
        return self._end(below[1] if isinstance(below, tuple) else below)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        """Behind the line break of the line."""
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def _alone(self, start: int) -> bool:
        """Whether nothing but spaces stands before it on its line."""
        return not self.text[self._line_start(start) : start].strip()

    def _comments(self, start: int, end: int, value: yaml.Node | None, at: int) -> str:
        """The comments between two places, each on a line of its own: they are the author's, and stay."""
        held: list[str] = []
        position = start
        for from_, to in [*_scalar_spans(value, self), (end, end)]:
            held.extend(_COMMENT.findall(self.text[position:from_].replace("\r", "")))
            position = max(position, to)
        indent = " " * (at - self._line_start(at))
        if not held:
            return ""
        if self._alone(at):
            return "".join(f"{indent}{comment.rstrip()}\n" for comment in held)
        raise CannotEdit("comments stand in it")


def _scalar_spans(value: yaml.Node | None, text: Text) -> list[tuple[int, int]]:
    if isinstance(value, yaml.ScalarNode):
        return [(text._offset(value.start_mark), text._end(value))]
    if isinstance(value, yaml.MappingNode):
        return [span for pair in value.value for each in pair for span in _scalar_spans(each, text)]
    if isinstance(value, yaml.SequenceNode):
        return [span for each in value.value for span in _scalar_spans(each, text)]
    return []


def _inline(value: Any, style: str | None, *, flow: bool = False) -> str:
    """A value on one line, quoted as the one it replaces was; between brackets a comma needs quotes."""
    bare = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if not style and any(isinstance(each, str) and needs_quotes(each) for each in bare):
        return json.dumps(value, ensure_ascii=False)  # PyYAML would leave 1e-4 bare, a number to Kubernetes
    if flow and style not in ("'", '"'):
        return yaml.safe_dump([value], default_flow_style=True, width=10**9, sort_keys=False).rstrip("\n")[1:-1]
    if isinstance(value, str) and style in ("'", '"'):
        dumped = yaml.safe_dump(value, default_style=style, width=10**9)
    else:
        dumped = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
    return dumped.removesuffix("\n...\n").rstrip("\n")
