"""A value of a YAML document that knows its place, and that may be missing.

``document["spec"]["template"]`` never fails: what is not there is a missing node, which is false, has no text, no items
and no keys, and whose place is that of the nearest thing above it. So a rule reads a manifest without asking at every
step, and can point at what should be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from argosy.workflows.manifests.placeholder import filled_later, in_capitals, placed, variable

_NULL: Final = "tag:yaml.org,2002:null"
_BOOL: Final = "tag:yaml.org,2002:bool"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_MERGE: Final = "tag:yaml.org,2002:merge"
_TRUE: Final = ("true", "yes", "on", "y")
_NO_STRING: Final = re.compile(
    r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|\d[\d_]*|\.\d+([eE][-+]?\d+)?|\d+(\.\d*)?([eE][-+]?\d+)?)"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE"
    r"|n|N|no|No|NO|off|Off|OFF|false|False|FALSE"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document's text stands: a document inside a string of another one begins lower and further right.

    ``editable`` is false where the text is not the file's own (a string with escapes, a generated document).
    """

    file: str
    line: int = 0
    column: int = 0
    editable: bool = True


class Node:
    """A value of a document, or the absence of one.

    Attributes:
        yaml: the composed node; None for a missing one.
        parent: the mapping or sequence that holds it; None for a document's root.
        key: its key in a mapping, its index in a sequence, ``""`` for a root.
        key_yaml: the composed node of its key; None where it has none.
    """

    __slots__ = ("_entries", "_items", "key", "key_yaml", "origin", "parent", "yaml")

    def __init__(
        self,
        composed: yaml.Node | None,
        origin: Origin,
        parent: Node | None = None,
        key: str | int = "",
        key_yaml: yaml.Node | None = None,
    ) -> None:
        self.yaml = composed
        self.origin = origin
        self.parent = parent
        self.key = key
        self.key_yaml = key_yaml
        self._entries: dict[str, Node] | None = None
        self._items: list[Node] | None = None

    # ---- what it is

    def __bool__(self) -> bool:
        """Whether it is there and not null."""
        return self.yaml is not None and self.yaml.tag != _NULL

    @property
    def exists(self) -> bool:
        """Whether it is written, even as null."""
        return self.yaml is not None

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.yaml, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a sequence."""
        return isinstance(self.yaml, yaml.SequenceNode)

    @property
    def is_scalar(self) -> bool:
        """Whether it is a scalar that is not null."""
        return isinstance(self.yaml, yaml.ScalarNode) and self.yaml.tag != _NULL

    @property
    def is_string(self) -> bool:
        """Whether YAML reads it as a string (``"1"`` and not ``1``)."""
        return self.is_scalar and self._tag == "tag:yaml.org,2002:str"

    @property
    def is_kubernetes_string(self) -> bool:
        """Whether the API server gets it as a string.

        Its reader (sigs.k8s.io/yaml, goyaml.v2/resolve.go) is not PyYAML: a bare ``1e-4`` is a number and a bare ``y``
        a boolean there, while a date and ``12:30`` are strings.
        """
        plain = self.is_scalar and not getattr(self.yaml, "style", None)
        return self.is_scalar and not (plain and needs_quotes(self.text))

    @property
    def _tag(self) -> str:
        return "" if self.yaml is None else str(self.yaml.tag)

    # ---- what it says

    @property
    def text(self) -> str:
        """A scalar as it is written, without quotes; ``""`` for anything else."""
        held = self.yaml
        return str(held.value) if isinstance(held, yaml.ScalarNode) and held.tag != _NULL else ""

    @property
    def open(self) -> bool:
        """Whether somebody fills it in later (``{{…}}``, ``$(…)``, ``${…}``): its value is not known here."""
        if isinstance(self.yaml, yaml.MappingNode):  # an unquoted {{ x }}, or {x}
            return any(isinstance(key, yaml.MappingNode) for key, _ in self.yaml.value) or unquoted(self.yaml)
        # Within a string, a bare {{…}} was replaced by as many x, to be YAML at all (reading.py).
        if filled_later(self.text) or (not self.origin.editable and "xxxxx" in self.text):
            return True
        return isinstance(self.key, str) and variable(self.text)

    @property
    def placed(self) -> bool:
        """Whether it is still to be written, by a script or by a guide's reader: there is nothing to judge yet."""
        return placed(self.text)

    @property
    def in_capitals(self) -> bool:
        """Whether it holds a word in capitals, which a script replaces where no capitals can stand."""
        return in_capitals(self.text)

    @property
    def number(self) -> int | None:
        """A whole number, quoted or not; None for anything else."""
        text = self.text.replace("_", "") if self._tag == _INT else self.text
        return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else None

    @property
    def flag(self) -> bool | None:
        """A boolean; None for anything else."""
        return self.text.lower() in _TRUE if self._tag == _BOOL else None

    @property
    def data(self) -> Any:
        """Plain Python: dict, list, str, int, float, bool, None."""
        if self.is_mapping:
            return {key: value.data for key, value in self.entries.items()}
        if self.is_list:
            return [item.data for item in self.items]
        if not self:
            return None
        if self._tag == _BOOL:
            return self.flag
        if self._tag == _INT and self.number is not None:
            return self.number
        if self._tag == _FLOAT:
            return _float(self.text)
        return self.text

    # ---- what is below it

    @property
    def entries(self) -> dict[str, Node]:
        """A mapping's values by key, merge keys resolved, the last of equal keys; empty for anything else."""
        if self._entries is None:
            self._entries = self._read_entries()
        return self._entries

    @property
    def items(self) -> list[Node]:
        """A sequence's items; empty for anything else."""
        if self._items is None:
            held = self.yaml.value if isinstance(self.yaml, yaml.SequenceNode) else ()
            self._items = [Node(item, self.origin, self, index) for index, item in enumerate(held)]
        return self._items

    def __getitem__(self, key: str) -> Node:
        found = self.entries.get(key)
        return found if found is not None else Node(None, self.origin, self, key)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    def at(self, path: str) -> Node:
        """Below a dotted path of keys (``spec.template.spec``); keys that contain dots are taken with ``[...]``."""
        node = self
        for key in path.split("."):
            node = node[key]
        return node

    def walk(self) -> Iterator[Node]:
        """Itself and everything below it."""
        yield self
        for below in [*self.entries.values(), *self.items]:
            yield from below.walk()

    def _read_entries(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        if not isinstance(self.yaml, yaml.MappingNode):
            return found
        for key, value in self.yaml.value:
            if key.tag == _MERGE:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for each in reversed(merged):
                    found = Node(each, self.origin, self).entries | found
        for key, value in self.yaml.value:
            if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
                found[str(key.value)] = Node(value, self.origin, self, str(key.value), key)
        return found

    # ---- where it is

    @property
    def path(self) -> str:
        """``spec.containers[0].env``."""
        parts: list[str] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            if node.key != "":  # a merged mapping stands where the merge key stands
                parts.append(f"[{node.key}]" if isinstance(node.key, int) else f".{node.key}")
            node = node.parent
        return "".join(reversed(parts)).removeprefix(".")

    @property
    def key_mark(self) -> tuple[int, int, int]:
        """(line, column, end column) of its key, else of itself; all from 1."""
        return self._mark(self.key_yaml) if self.key_yaml is not None else self.mark

    @property
    def mark(self) -> tuple[int, int, int]:
        """(line, column, end column) of its first line; of the nearest thing above if it is missing; all from 1."""
        if self.yaml is not None:
            return self._mark(self.yaml)
        return self.parent.key_mark if self.parent is not None else (self.origin.line + 1, 1, 1)

    @property
    def line(self) -> int:
        """The first line, from 1."""
        return self.mark[0]

    @property
    def last_line(self) -> int:
        """The last line it takes, from 1."""
        if self.yaml is None:
            return self.line
        end = self.yaml.end_mark
        return self.origin.line + int(end.line) + (1 if end.column else 0)

    def _mark(self, composed: yaml.Node) -> tuple[int, int, int]:
        start, end = composed.start_mark, composed.end_mark
        column = int(start.column) + 1 + self.origin.column
        last = int(end.column) + 1 + self.origin.column if end.line == start.line else column + 1
        return int(start.line) + 1 + self.origin.line, column, max(last, column + 1)

    def __repr__(self) -> str:
        return f"Node({self.path or '/'} line {self.line})" if self.exists else f"Node({self.path} missing)"


def unquoted(held: yaml.MappingNode) -> bool:
    """Whether it is a bare ``{x}``, for Python to fill in: no field of Kubernetes takes a mapping to nothing."""
    written = [(type(key), value.tag, value.value) for key, value in held.value]
    return bool(held.flow_style) and written == [(yaml.ScalarNode, _NULL, "")]


def _float(text: str) -> float | str:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return text


def needs_quotes(text: str) -> bool:
    """Whether the API server's YAML reader takes the bare text for a number or a boolean."""
    return _NO_STRING.fullmatch(text) is not None
